"""Many events in one INSERT, as a producer with plain SQL, and what a fetch beside them reads; for each engine."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal
from zlib import crc32

from pillarbox.core.fetch import Bounds, Due, FetchQuery, NextInQueues, Ready
from pillarbox.core.message import KeyQueue
from pillarbox.statements import Names
from pillarbox.stores.postgres.statements import PostgresStatements
from pillarbox.stores.sqlite import SqliteStore
from tests.extremes.databases import rows
from tests.plans.explain import Explainer
from tests.plans.test_mariadb import Measured, cost

Kind = Literal["ready", "due", "next"]

BATCH = 500
LANES = list(range(64))
BOUNDS = Bounds(limit=BATCH, quota=BATCH)
HOT = "hot"
"""The key of the queue whose next events are fetched."""


def queries(kinds: Sequence[Kind], lanes: Sequence[int]) -> Iterator[FetchQuery]:
    """What a relay fetches, for its lanes."""
    for kind in kinds:
        if kind == "next":
            queue = KeyQueue(lanes[crc32(HOT.encode()) % len(lanes)], HOT, "orders")
            yield NextInQueues(queues=[queue], bounds=BOUNDS)
        else:
            yield (Ready if kind == "ready" else Due)(lanes=lanes, bounds=BOUNDS)


HELD = """
UPDATE outbox_message SET ordering_key = '{key}', destination = 'orders', held = 'waiting' WHERE event_id LIKE '{key}-%'
"""
STATEMENTS = PostgresStatements(Names(schema="public"))
BYTES = [8 * 1024**2, 1 << 62]


async def _measure_postgres(url: str, kinds: Sequence[Kind]) -> list[int]:
    found: list[int] = []
    for kind in kinds:
        read = await Explainer(url).cost(STATEMENTS.get(f"fetch_{kind}"), LANES, BATCH, BATCH, *BYTES, [], [])
        assert read.returned == BATCH
        found += [read.rows, read.pages]
    return found


async def _measure_mariadb(url: str, kinds: Sequence[Kind]) -> list[int]:
    found: list[int] = []
    async with aclosing(Measured(url)) as store:
        for query in queries(kinds, LANES):
            read, messages = await cost(store, store.messages.fetch(query))
            assert len(messages) == BATCH
            found.append(read)
    return found


async def _measure_sqlite(url: str, kinds: Sequence[Kind]) -> list[int]:
    found: list[int] = []
    steps = 0

    def tick() -> int:
        nonlocal steps
        steps += 1
        return 0

    def attach(db: sqlite3.Connection) -> None:
        db.set_progress_handler(tick, 100)

    async with aclosing(SqliteStore(url)) as store:
        await store._connection.read(attach)
        for query in queries(kinds, [0]):
            steps = 0
            assert len(await store.messages.fetch(query)) == BATCH
            found.append(steps)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk:
    """How to insert and to measure on one engine."""

    insert: str
    at: str
    """When event `n` is due, seconds and n milliseconds from now."""
    early: str
    """Counts events that were delivered earlier after they were recorded."""
    analyze: str
    measure: Callable[[str, Sequence[Kind]], Coroutine[Any, Any, list[int]]]
    """What fetches read: rows, pages, or hundreds of steps."""

    def load(self, url: str, prefix: str, count: int, *, event_type: str, due: float | None = None) -> None:
        """Insert events with 1,000 keys. due: seconds from now."""
        when = "NULL" if due is None else self.at.format(due)
        rows(url, self.insert.format(prefix=prefix, event_type=event_type, due=when, count=count))
        if self.analyze:
            rows(url, self.analyze)

    def block(self, url: str, key: str, count: int) -> None:
        """Let events of a key wait for its first one."""
        self.load(url, f"{key}-{count}-", count, event_type="blocked")
        rows(url, HELD.format(key=key))


_INTO = (
    "INSERT INTO outbox_message (event_id, event_type, payload, ordering_key, available_at)"
    " SELECT {event_id}, '{{event_type}}', '{{{{}}}}', {key}, {{due}} FROM {numbers}"
)
_EARLY = "SELECT count(*) FROM outbox_history WHERE event_id LIKE 'soon-%' AND published_at < {}"

BULK = {
    "postgres": Bulk(
        insert=_INTO.format(
            event_id="'{prefix}' || n", key="'key ' || (n % 1000)", numbers="generate_series(1, {count}) n"
        ),
        at="now() + interval '{} s' + n * interval '1 ms'",
        early=_EARLY.format("recorded_at + interval '{} s'"),
        analyze="ANALYZE outbox_message",
        measure=_measure_postgres,
    ),
    "mariadb": Bulk(
        insert=_INTO.format(
            event_id="concat('{prefix}', n)",
            key="concat('key ', n % 1000)",
            numbers="(SELECT seq AS n FROM seq_1_to_{count}) AS s",
        ),
        at="utc_timestamp(6) + INTERVAL {} SECOND + INTERVAL n * 1000 MICROSECOND",
        early=_EARLY.format("recorded_at + INTERVAL {} SECOND"),
        analyze="ANALYZE TABLE outbox_message",
        measure=_measure_mariadb,
    ),
    "sqlite": Bulk(
        insert="WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count}) "
        + _INTO.format(event_id="'{prefix}' || n", key="'key ' || (n % 1000)", numbers="s"),
        at="strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '{} seconds', (n * 0.001) || ' seconds')",
        early=_EARLY.format("strftime('%Y-%m-%dT%H:%M:%fZ', recorded_at, '{} seconds')"),
        analyze="",  # a store analyzes nothing
        measure=_measure_sqlite,
    ),
}
