"""`python -m benchmarks.transports [EVENTS] [ROUNDS] [KIND …] [--report FILE]`: a relay beside clients.

Each round measures, one after the other: what the client of a transport publishes at most, and how fast a relay drains
PostgreSQL into it; and how fast a relay drains PostgreSQL and MariaDB if every send is confirmed at once. The last
columns say what share of the smaller of the two a relay reaches. Kafka is librdkafka's mock cluster.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import psycopg
import pymysql

from benchmarks.broker import WINDOW
from benchmarks.draining import SETTINGS
from benchmarks.engines import EngineUnderTest, engines
from benchmarks.events import EVENT_TYPE, FILL, KEYS, payload
from benchmarks.processes import cpu_seconds, workers
from benchmarks.reporting.transports import Drained, Row, TransportRun, table_of
from pillarbox import open_store
from tests.servers.mariadb import MariaDBServer
from tests.servers.postgres import PostgresServer

RELAY = "benchmarks.workers.engine_relay"
ONE_KEY = {"keys": 1, "destination": {"ordering": "pipelined"}}
INSERT_MARIADB = "INSERT INTO outbox_message (event_type, payload, ordering_key) VALUES (%s, %s, %s)"


class Backlogs:
    """The databases, filled anew for each sample."""

    def __init__(self, postgres: PostgresServer, mariadb: MariaDBServer) -> None:
        self._postgres, self._mariadb = postgres, mariadb

    @contextmanager
    def postgresql(self, events: int, keys: int) -> Iterator[tuple[str, int]]:
        """A database with that many pending events: its URL, and the pid of its server."""
        self._postgres.create_database("bench")
        url = self._postgres.url("bench")
        try:
            apply_schema(url)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(FILL.encode(), {"keys": keys, "events": events})
                connection.execute("VACUUM ANALYZE outbox_message")
            yield url, self._postgres.pid
        finally:
            self._postgres.drop_database("bench")

    @contextmanager
    def mariadb(self, events: int, keys: int) -> Iterator[tuple[str, int]]:
        """The same on MariaDB."""
        connect: dict[str, Any] = {"host": "127.0.0.1", "port": self._mariadb.port, "user": "root", "autocommit": True}
        with pymysql.connect(**connect) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE OR REPLACE DATABASE bench")
            url = self._mariadb.url("bench")
            apply_schema(url)
            cursor.execute("USE bench")
            rows = [(EVENT_TYPE, payload(n), f"ORDER:{n * 7919 % keys}") for n in range(1, events + 1)]
            for first in range(0, events, 5000):
                cursor.executemany(INSERT_MARIADB, rows[first : first + 5000])
            cursor.execute("ANALYZE TABLE outbox_message")
            yield url, self._mariadb.pid
            cursor.execute("DROP DATABASE bench")


def apply_schema(url: str) -> None:
    async def apply() -> None:
        async with aclosing(open_store(url)) as store:
            await store.schema.apply()

    asyncio.run(apply())


def drain(store: tuple[str, int], events: int, kind: str, url: str, name: str, **options: Any) -> Drained:
    """Let a relay deliver the backlog."""
    address, pid = store
    job = {"store": address, "kind": kind, "transport": url, "name": name, **options}
    with workers(RELAY, [job]) as [relay]:
        before = cpu_seconds(pid)
        relay.go()
        began = time.monotonic()
        report = relay.report()
        each = 1e6 / events
        return Drained(events / (report["finished"] - began), report["cpu"] * each, (cpu_seconds(pid) - before) * each)


def measure(backlogs: Backlogs, servers: list[EngineUnderTest], rows: dict[str, Row], events: int) -> None:
    """One round."""

    def row(name: str) -> Row:
        return rows.setdefault(name, Row())

    stores: dict[str, Callable[[int, int], Any]] = {"PostgreSQL": backlogs.postgresql, "MariaDB": backlogs.mariadb}
    for name, backlog in stores.items():
        with backlog(events, KEYS) as store:
            row(name).drained.append(drain(store, events, "", "", ""))
    for server in servers:
        server.renew()
        raw = server.raw(events)
        cases: dict[str, dict[str, Any]] = {server.kind: {}}
        if server.kind == "kafka":
            cases["kafka, 1 key"] = ONE_KEY
        for name, options in cases.items():
            row(name).raw.append(raw.rate)
            row(name).client.append(raw.cpu)
            server.renew()
            case = dict(options)
            with backlogs.postgresql(events, case.pop("keys", KEYS)) as store:
                row(name).drained.append(drain(store, events, server.kind, server.url, server.name, **case))
            assert server.arrived() == events, f"{name}: {server.arrived()} of {events} events arrived"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("events", type=click.IntRange(2 * WINDOW), default=30_000)
@click.argument("rounds", type=click.IntRange(1), default=3)
@click.argument("kinds", nargs=-1, metavar="[KIND]…")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="Write the samples to this file, too: docs/reference/transports.json is a section of the benchmarks' page.",
)
def main(events: int, rounds: int, kinds: tuple[str, ...], report: Path | None) -> None:
    """Measure a relay on each transport beside the client of that transport."""
    machine = {"cores": len(os.sched_getaffinity(0)), "python": platform.python_version(), "system": platform.system()}
    started = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    run = TransportRun(machine=machine, started=started, events=events, rounds=rounds)
    with (
        PostgresServer(durable=True, settings=SETTINGS) as postgres,
        MariaDBServer(durable=True) as mariadb,
        engines(list(kinds)) as servers,
    ):
        for number in range(rounds):
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
            measure(Backlogs(postgres, mariadb), servers, run.rows, events)
    if report is not None:
        run.write(report)
    print(table_of(run.rows))


if __name__ == "__main__":
    main()
