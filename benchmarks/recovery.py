"""How long until events flow again: after an outage of the broker, of the database, and after kill -9 of a relay.

    python -m benchmarks.recovery [outages]

Starts a private PostgreSQL and a private RabbitMQ, and `pillarbox relay` processes with the default settings. Each
server is killed, kept away for 1 to 10 s and started again; events are recorded as soon as both servers are there, and
the time counts from the moment at which the killed one takes connections until the last of them is settled. A killed
relay is one of two; the time counts from the kill until events of every lane, recorded at that moment, are settled by
the other one.
"""

from __future__ import annotations

import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from pillarbox import Event, Outbox
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

EVENTS = 300
"""Enough for every one of 64 lanes to have some."""
LEFT = "SELECT count(*) FROM outbox_message"
SERVER_UP = "SELECT extract(epoch FROM now() - pg_postmaster_start_time())"
SETTLED = 7
"""Seconds for which PostgreSQL has been up before a relay is killed. Relays reconnect after a restart of the server, so
a missing session reveals a crashed relay only once the server has been up for 5 s;
an earlier kill measures the lease."""
PAUSE = 0.005
MAX_SECONDS = 60


@contextmanager
def relay(folder: Path, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {f"PILLARBOX_{name}": value for name, value in settings.items()}
    with (folder / "relay.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "pillarbox", "relay"],
            env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def seconds_until(fact: Callable[[], bool], *, since: float) -> float:
    while not fact():
        if time.monotonic() - since > MAX_SECONDS:
            raise TimeoutError(f"nothing flows after {MAX_SECONDS} s")
        time.sleep(PAUSE)
    return time.monotonic() - since


class Postgres:
    """The store of one relay or two."""

    def __init__(self, url: str) -> None:
        self.url = url

    def record(self) -> None:
        with psycopg.connect(self.url) as connection:
            Outbox().record(connection, *(Event("recovery", {}) for _ in range(EVENTS)))

    def number(self, statement: str) -> int:
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute(statement).fetchone()
            return int(row[0]) if row else 0

    def drained(self) -> bool:
        return self.number(LEFT) == 0

    def settled(self) -> bool:
        return self.number(SERVER_UP) >= SETTLED

    def shared(self) -> bool:
        return self.number("SELECT min(lanes) FROM (SELECT count(*) lanes FROM outbox_lane GROUP BY owner) x") == 32


def outages(server: PostgresServer | RabbitMQServer, store: Postgres, number: int) -> list[float]:
    took = []
    for _ in range(number):
        server.kill()
        is_broker = isinstance(server, RabbitMQServer)
        if is_broker:
            store.record()
        time.sleep(random.uniform(1, 10))
        server.start()
        back = time.monotonic()
        if not is_broker:
            store.record()
        took.append(seconds_until(store.drained, since=back))
    return took


def kills(folder: Path, store: Postgres, number: int, **settings: str) -> list[float]:
    took = []
    with relay(folder, **settings) as first:
        for _ in range(number):
            with relay(folder, **settings) as victim:
                wait_until(store.shared, bound=60, what="two relays share the lanes")
                wait_until(store.settled, bound=60, what="the server has been up for long enough")
                time.sleep(random.uniform(0, 1))
                victim.kill()
                killed = time.monotonic()
                victim.wait()
                store.record()
                took.append(seconds_until(store.drained, since=killed))
        assert first.poll() is None
    return took


def kills_on_sqlite(folder: Path, number: int) -> list[float]:
    settings = {"STORE": "sqlite:///recovery.db", "TRANSPORT": "stdout://"}
    subprocess.run(
        [sys.executable, "-m", "pillarbox", "schema", "apply"],
        env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path), "PILLARBOX_STORE": settings["STORE"]},
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    took = []

    def number_of(statement: str) -> int:
        with closing(sqlite3.connect(folder / "recovery.db", timeout=10)) as connection:
            return int(connection.execute(statement).fetchone()[0])

    for _ in range(number):
        with relay(folder, **settings) as victim:
            wait_until(lambda: number_of("SELECT count(owner) FROM outbox_lane") == 1, bound=60, what="it has the lane")
            with relay(folder, **settings) as other:
                wait_until(
                    lambda: number_of("SELECT count(*) FROM outbox_relay") == 2, bound=60, what="two relays live"
                )
                time.sleep(random.uniform(1, 2))
                victim.kill()
                killed = time.monotonic()
                with closing(sqlite3.connect(folder / "recovery.db", timeout=10)) as connection, connection:
                    Outbox().record(connection, Event("recovery", {}))
                took.append(seconds_until(lambda: number_of(LEFT) == 0, since=killed))
                other.terminate()
                other.wait(60)
    return took


def show(what: str, took: list[float]) -> None:
    ordered = sorted(took)
    p99 = statistics.quantiles(ordered, n=100, method="inclusive")[98]
    print(
        f"{what:<28} n={len(took)}  p50 {statistics.median(ordered):.2f} s  p99 {p99:.2f} s  max {ordered[-1]:.2f} s",
        flush=True,
    )


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    database, broker = PostgresServer(), RabbitMQServer()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        show("kill -9 of a relay, SQLite", kills_on_sqlite(folder, number))
        try:
            database.start()
            broker.start()
            database.create_database("recovery")
            store = Postgres(database.url("recovery"))
            settings = {"STORE": store.url, "TRANSPORT": broker.url()}
            subprocess.run(
                [sys.executable, "-m", "pillarbox", "schema", "apply"],
                env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path), "PILLARBOX_STORE": store.url},
                check=True,
                stdout=subprocess.DEVNULL,
            )
            show("kill -9 of a relay, PostgreSQL", kills(folder, store, number, **settings))
            with relay(folder, **settings):
                store.record()
                wait_until(store.drained, bound=60, what="the relay works")
                show("database killed, back", outages(database, store, number))
                show("broker killed, back", outages(broker, store, number))
        finally:
            broker.close()
            database.close()


if __name__ == "__main__":
    main()
