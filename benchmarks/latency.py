"""From commit to confirm at a steady rate, with the writer in a process of its own.

The floor is what no relay can be faster than: one connection commits the same row, then a socket publishes the same
message and waits for its confirm.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path

import psycopg

from benchmarks.broker import raw_publisher
from benchmarks.draining import DATABASE, QUEUE, RELAY, STUCK, Lost, Servers, apply_schema
from benchmarks.events import FILL
from benchmarks.processes import workers
from benchmarks.results import Latency
from tests.servers.waiting import wait_until

WRITER = "benchmarks.workers.writer"
KEYS = 500
MAX_FLOOR_EVENTS = 2000
WARM_UP = 10
"""Events that are not counted: the first ones of a connection take longer, with a relay and without."""
FEWEST = 2 * WARM_UP


def percentiles(seconds: list[float]) -> tuple[float, float, float]:
    """The median, the 99th percentile and the longest, in ms."""
    ordered = sorted(seconds)
    p99 = statistics.quantiles(ordered, n=100, method="inclusive")[98]
    return statistics.median(ordered) * 1000, p99 * 1000, ordered[-1] * 1000


def measure(servers: Servers, rate: int, seconds: float, *, kind: str = "quorum") -> Latency:
    """Raises Lost unless every event arrived."""
    events = max(FEWEST, int(rate * seconds))
    # One connection after another commits some hundreds a second; more events would only take longer.
    floor = _floor(servers, rate, min(events, MAX_FLOOR_EVENTS), kind)
    floor_p50, floor_p99, _ = percentiles(floor)
    taken, achieved = _through_relay(servers, rate, events, kind)
    p50, p99, longest = percentiles(taken)
    return Latency(
        rate=rate,
        achieved=achieved,
        events=events,
        p50=p50,
        p99=p99,
        longest=longest,
        floor_p50=floor_p50,
        floor_p99=floor_p99,
    )


def _through_relay(servers: Servers, rate: int, events: int, kind: str) -> tuple[list[float], float]:
    servers.make_database(apply_schema)
    servers.queues.make(QUEUE, kind)
    store = servers.postgres.url(DATABASE)
    try:
        with tempfile.TemporaryDirectory() as folder:
            committed, confirmed = Path(folder, "committed.json"), Path(folder, "confirmed.json")
            relay_job = {
                "store": store,
                "broker": servers.rabbitmq.url(),
                "queue": QUEUE,
                "history": True,
                "ledger": False,
                "body": "payload",
                "profile": False,
                "confirmed": str(confirmed),
            }
            writer_job = {"store": store, "rate": rate, "events": events, "keys": KEYS, "committed": str(committed)}
            with workers(RELAY, [relay_job]) as [relay], workers(WRITER, [writer_job]) as [writer]:
                relay.go()
                with psycopg.connect(store, autocommit=True) as connection:
                    owned = "SELECT FROM outbox_lane WHERE owner IS NULL"
                    wait_until(lambda: not connection.execute(owned).rowcount, bound=STUCK, what="it has the lanes")
                writer.go()
                wrote = writer.report()
                wait_until(lambda: servers.queues.depth(QUEUE) >= events, bound=STUCK, what="every event arrived")
                relay.finish()
            begins, ends = json.loads(committed.read_text()), json.loads(confirmed.read_text())
            if missing := begins.keys() - ends.keys():
                raise Lost(f"{len(missing)} of {events} events were never confirmed")
            taken = [ends[event] - begin for event, begin in sorted(begins.items(), key=lambda one: one[1])]
            return taken[WARM_UP:], events / wrote["seconds"]
    finally:
        servers.queues.remove(QUEUE)
        servers.postgres.drop_database(DATABASE)


def _floor(servers: Servers, rate: int, events: int, kind: str) -> list[float]:
    """Commit, then publish and wait, at the same rate or as fast as one connection can."""
    servers.make_database(apply_schema)
    servers.queues.make(QUEUE, kind)
    taken = []
    try:
        with (
            psycopg.connect(servers.postgres.url(DATABASE)) as connection,
            raw_publisher(servers.rabbitmq.port, QUEUE, window=1) as publisher,
        ):
            began = time.monotonic()
            for number in range(events):
                time.sleep(max(0.0, began + number / rate - time.monotonic()))
                connection.execute(FILL.encode(), {"keys": KEYS, "events": 1})
                before = time.monotonic()
                connection.commit()
                publisher.publish()
                taken.append(time.monotonic() - before)
    finally:
        servers.queues.remove(QUEUE)
        servers.postgres.drop_database(DATABASE)
    return taken[WARM_UP:]
