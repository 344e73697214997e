"""Fetch and settle of the PostgreSQL store alone, compared with the row lease that most outboxes use.

The row lease stands here twice: with the indexes that outboxes document (a unique event id, the status with its
time, the next attempt), and lean, with a primary key and one partial index: faster than any we have met, and without an
idempotent id.

`python -m benchmarks.postgres_store [events] [repeats]` starts a private PostgreSQL with fsync on, and interleaves the
ways within each repeat; the table shows medians and the ratio to the row lease of the same row of the table.
Both ways read batches of 500 messages of 320 bytes over asyncpg and settle each batch before they read the next.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import sys
import time
from multiprocessing.synchronize import Barrier

import asyncpg

from pillarbox.core.fetch import Bounds, Ready
from pillarbox.core.lane import LANES, RelayRegistration, epochs_of
from pillarbox.core.outcome import DELIVERED, Decision
from pillarbox.stores.postgres import PostgresStore
from tests.servers.postgres import PostgresServer

BATCH = 500
KEYS = {"20,000 keys": 20_000, "50 hot keys": 50}
WAYS = ("row lease", "lean row lease", "lanes, history off", "lanes, history on")

ROW_LEASE_TABLE = """
CREATE TABLE row_lease (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id text NOT NULL DEFAULT gen_random_uuid(),
  event_type text NOT NULL, key text, payload bytea NOT NULL, headers jsonb NOT NULL DEFAULT '{}',
  status text NOT NULL DEFAULT 'NEW', locked_by text, locked_at timestamptz, attempts integer NOT NULL DEFAULT 0,
  next_retry_at timestamptz NOT NULL DEFAULT now(), created_at timestamptz NOT NULL DEFAULT now(),
  published_at timestamptz);
"""
INDEXES = {
    "row lease": """
        CREATE UNIQUE INDEX ON row_lease (event_id);
        CREATE INDEX ON row_lease (status, created_at);
        CREATE INDEX ON row_lease (next_retry_at) WHERE status <> 'DONE';""",
    "lean row lease": "CREATE INDEX ON row_lease (id) WHERE status = 'NEW';",
}
CLAIM = """
UPDATE row_lease SET status = 'PROCESSING', locked_by = $1, locked_at = now() WHERE id IN (
  SELECT id FROM row_lease WHERE status = 'NEW' ORDER BY {order} LIMIT $2 FOR UPDATE SKIP LOCKED)
RETURNING id, event_id, event_type, key, payload, headers, attempts, created_at"""
ORDER = {"row lease": "created_at", "lean row lease": "id"}
DONE = "UPDATE row_lease SET status = 'DONE', published_at = now(), locked_by = NULL WHERE id = ANY ($1)"

FILL = """
INSERT INTO {table} (event_type, payload, {key})
SELECT 'order.placed', convert_to(repeat('x', 320), 'UTF8'), 'ORDER:' || (g * 7919 % {keys})
FROM generate_series(1, {events}) g
"""


async def carry_by_row_lease(way: str, url: str, name: str, start: Barrier) -> int:
    connection = await asyncpg.connect(url)
    claim = CLAIM.format(order=ORDER[way])
    await connection.fetch(claim, name, 0)
    start.wait()
    carried = 0
    while claimed := await connection.fetch(claim, name, BATCH):
        await connection.execute(DONE, [row["id"] for row in claimed])
        carried += len(claimed)
    await connection.close()
    return carried


async def carry_by_lanes(url: str, name: str, start: Barrier, *, share: int, history: bool) -> int:
    store = PostgresStore(url, history=history)
    await store.lanes.join(RelayRegistration(id=name), lease=3600)
    epochs = epochs_of(await store.lanes.acquire(name, limit=share))
    lanes = list(epochs)
    await store.messages.fetch(Ready(lanes=lanes, bounds=Bounds(limit=1, quota=1)))
    start.wait()
    carried, quota = 0, BATCH // share + 1
    while found := await store.messages.fetch(Ready(lanes=lanes, bounds=Bounds(limit=BATCH, quota=quota))):
        decisions = [Decision(message, DELIVERED, "orders", 0.0034) for message in found]
        settled = await store.writes.settle(epochs, decisions)
        assert settled.count == len(found)
        carried += len(found)
        if len(found) < BATCH:
            # Few lanes have work: take more of each.
            quota = min(BATCH, 2 * quota)
    await store.aclose()
    return carried


def worker(way: str, url: str, name: str, processes: int, start: Barrier, done: multiprocessing.Queue[int]) -> None:
    if way in INDEXES:
        carried = asyncio.run(carry_by_row_lease(way, url, name, start))
    else:
        share = LANES // processes
        carried = asyncio.run(carry_by_lanes(url, name, start, share=share, history=way.endswith("on")))
    done.put(carried)


async def prepare(url: str, way: str, keys: int, events: int) -> None:
    connection = await asyncpg.connect(url)
    if way in INDEXES:
        await connection.execute(ROW_LEASE_TABLE + INDEXES[way])
        table, key = "row_lease", "key"
    else:
        store = PostgresStore(url)
        await store.schema.apply()
        await store.aclose()
        table, key = "outbox_message", "ordering_key"
    await connection.execute(FILL.format(table=table, key=key, keys=keys, events=events))
    await connection.execute(f"VACUUM ANALYZE {table}")
    await connection.execute("CHECKPOINT")
    await connection.close()


def measure(server: PostgresServer, way: str, keys: int, processes: int, events: int) -> float:
    """Events per second, from the moment all workers are ready until the last one found nothing more."""
    database = "bench"
    server.create_database(database)
    url = server.url(database)
    try:
        asyncio.run(prepare(url, way, keys, events))
        context = multiprocessing.get_context("spawn")
        start, done = context.Barrier(processes + 1), context.Queue()
        workers = [
            context.Process(target=worker, args=(way, url, f"worker-{number}", processes, start, done))
            for number in range(processes)
        ]
        for process in workers:
            process.start()
        start.wait()
        began = time.perf_counter()
        carried = sum(done.get() for _ in workers)
        elapsed = time.perf_counter() - began
        for process in workers:
            process.join()
        assert carried == events, f"{way}: {carried} of {events}"
        return events / elapsed
    finally:
        server.drop_database(database)


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 150_000
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    rows = [(label, processes) for label in KEYS for processes in (1, 2)]
    samples: dict[tuple[str, int, str], list[float]] = {}
    with PostgresServer(durable=True, settings={"max_wal_size": "4GB", "shared_buffers": "256MB"}) as server:
        for repeat in range(repeats):
            for label, processes in rows:
                for way in WAYS:
                    print(f"repeat {repeat + 1} of {repeats}: {label}, {processes} process(es), {way}", file=sys.stderr)
                    rate = measure(server, way, KEYS[label], processes, events)
                    samples.setdefault((label, processes, way), []).append(rate)
    print(f"events/s, {events} events, batch {BATCH}, fsync on, median of {repeats} (ratio to the row lease)")
    print(f"{'':<28}" + "".join(f"{way:>28}" for way in WAYS))
    for label, processes in rows:
        base = statistics.median(samples[label, processes, WAYS[0]])
        cells = [statistics.median(samples[label, processes, way]) for way in WAYS]
        line = "".join(f"{f'{cell:,.0f} ({cell / base:.2f})':>28}" for cell in cells)
        print(f"{f'{label}, {processes} process(es)':<28}{line}")


if __name__ == "__main__":
    main()
