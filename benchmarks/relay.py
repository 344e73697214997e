"""From PostgreSQL to RabbitMQ: one relay process, beside the fastest that any publisher could be.

    python -m benchmarks.relay [events] [repeats]

Starts a private PostgreSQL (fsync on) and a private RabbitMQ; persistent, mandatory, confirmed, 320-byte payloads,
20,000 keys. The ways take turns within each repeat; the table shows medians, the share of the raw publish limit within
the same run, and the processor time per event of the relay, of PostgreSQL and of RabbitMQ. Then the time from commit to
confirm at 200 events a second.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from contextlib import aclosing
from pathlib import Path

import asyncpg

from benchmarks.rabbitmq import empty, limit
from pillarbox import Event, Outbox, Relay, Route
from pillarbox.core.observations import EventDelivered, Observation
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import Queue, RabbitMQ
from pillarbox.transports.rabbitmq.topology import QueueType
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer

QUEUES: tuple[QueueType, ...] = ("classic", "quorum")
KEYS = 20_000
RATE = 200
SECONDS = 5
TICKS = os.sysconf("SC_CLK_TCK")

FILL = """
INSERT INTO outbox_message (event_type, payload, ordering_key)
SELECT 'order.placed', convert_to(repeat('x', 320), 'UTF8'), 'ORDER:' || (g * 7919 % $1)
FROM generate_series(1, $2::int) g
"""


def processor_time(root: int) -> float:
    """Seconds of processor that a process and its children have used, those that ended included."""
    total = 0.0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(entry.name) == root or int(fields[1]) == root:
                own = int(fields[11]) + int(fields[12])
                ended = int(fields[13]) + int(fields[14]) if int(entry.name) == root else 0
                total += (own + ended) / TICKS
    return total


class Figures:
    """What one run showed."""

    def __init__(self, rate: float, relay: float, postgres: float, rabbit: float) -> None:
        self.rate, self.relay, self.postgres, self.rabbit = rate, relay, postgres, rabbit


def relay_to(store: PostgresStore, rabbit: RabbitMQ, queue: str, *observers: object) -> Relay:
    return Relay(
        store=store,
        transports={"rabbit": rabbit},
        destinations={"orders": RabbitMQ.to(exchange="", routing_key=queue)},
        routes=[Route(to=["orders"])],
        observers=observers,  # type: ignore[arg-type]
    )


async def carry(pg: PostgresServer, mq: RabbitMQServer, kind: QueueType, *, history: bool, events: int) -> Figures:
    queue = f"bench.{kind}"
    pg.create_database("bench")
    try:
        async with (
            aclosing(PostgresStore(pg.url("bench"), history=history)) as store,
            aclosing(RabbitMQ(mq.url(), queues=[Queue(name=queue, type=kind)])) as rabbit,
        ):
            await store.schema.apply()
            connection = await asyncpg.connect(pg.url("bench"))
            await connection.execute(FILL, KEYS, events)
            await connection.execute("VACUUM ANALYZE outbox_message")
            await rabbit.ping()
            relay = relay_to(store, rabbit, queue)
            wall, own = time.perf_counter(), time.process_time()
            servers = processor_time(pg.pid), processor_time(mq.pid)
            await relay.run_until_empty()
            wall, own = time.perf_counter() - wall, time.process_time() - own
            assert await connection.fetchval("SELECT count(*) FROM outbox_message") == 0
            await connection.close()
            used = processor_time(pg.pid) - servers[0], processor_time(mq.pid) - servers[1]
            return Figures(events / wall, *(part / events * 1e6 for part in (own, *used)))
    finally:
        pg.drop_database("bench")
        empty(mq.url(), kind)


async def latency(pg: PostgresServer, mq: RabbitMQServer) -> list[float]:
    """Seconds from commit to confirm, at a steady rate."""
    pg.create_database("latency")
    committed: dict[str, float] = {}
    took: list[float] = []

    def confirmed(observation: Observation) -> None:
        if isinstance(observation, EventDelivered):
            took.append(time.perf_counter() - committed[observation.message.event_id])

    try:
        async with (
            aclosing(PostgresStore(pg.url("latency"))) as store,
            aclosing(RabbitMQ(mq.url(), queues=[Queue(name="bench.latency")])) as rabbit,
        ):
            await store.schema.apply()
            connection = await asyncpg.connect(pg.url("latency"))
            outbox = Outbox()
            async with relay_to(store, rabbit, "bench.latency", confirmed):
                began = time.perf_counter()
                for number in range(RATE * SECONDS):
                    event = Event("order.placed", {"n": number}, key=str(number % 500))
                    async with connection.transaction():
                        await outbox.arecord(connection, event)
                        committed[event.event_id] = time.perf_counter()
                    await asyncio.sleep(max(0.0, began + (number + 1) / RATE - time.perf_counter()))
                await eventually(lambda: _all(took))
            await connection.close()
        return took
    finally:
        pg.drop_database("latency")


async def _all(took: list[float]) -> bool:
    return len(took) == RATE * SECONDS


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    limits: dict[QueueType, list[float]] = {kind: [] for kind in QUEUES}
    runs: dict[tuple[QueueType, bool], list[Figures]] = {}
    with PostgresServer(durable=True, settings={"max_wal_size": "4GB"}) as pg, RabbitMQServer() as mq:
        for repeat in range(repeats):
            print(f"repeat {repeat + 1} of {repeats}", file=sys.stderr)
            for kind in QUEUES:
                for history in (False, True):
                    figures = asyncio.run(carry(pg, mq, kind, history=history, events=events))
                    runs.setdefault((kind, history), []).append(figures)
                limits[kind].append(limit(mq, kind, events).rate)
                empty(mq.url(), kind)
        waits = sorted(asyncio.run(latency(pg, mq)))
    print(f"{events} events, median of {repeats}, fsync on, persistent, mandatory, confirmed")
    print(f"{'':<24}{'events/s':>10}{'of the limit':>14}{'relay µs':>10}{'postgres µs':>13}{'rabbit µs':>11}")
    for kind in QUEUES:
        best = statistics.median(limits[kind])
        print(f"{kind + ', raw limit':<24}{best:>10,.0f}{1.0:>14.2f}")
        for history in (False, True):
            found = runs[kind, history]
            rate, relay, postgres, rabbit = (
                statistics.median(getattr(one, name) for one in found)
                for name in ("rate", "relay", "postgres", "rabbit")
            )
            label = f"{kind}, history {'on' if history else 'off'}"
            print(f"{label:<24}{rate:>10,.0f}{rate / best:>14.2f}{relay:>10.1f}{postgres:>13.1f}{rabbit:>11.1f}")
    middle, late = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    print(f"commit → confirm at {RATE} events/s: p50 {middle * 1000:.1f} ms, p99 {late * 1000:.1f} ms")


if __name__ == "__main__":
    main()
