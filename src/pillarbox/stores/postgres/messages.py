"""Fetches messages. Fetches lock nothing, scan no messages on hold, and never continue from a position.

A low-water mark is no position: nothing can appear below it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import assert_never

from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.fetch import Bounds, Due, Fetched, FetchQuery, NextInQueues, OrphanedQueues, Parked, Ready
from pillarbox.core.message import EarlierQuery, KeyQueue, message_of
from pillarbox.stores.postgres.arrays import literal
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.stores.postgres.low_water_marks import LowWaterMarks
from pillarbox.stores.postgres.statements import PostgresStatements

_BEFORE_ALL = KeyQueue(-1, "", "")
_ANY_SIZE = 1 << 62
_by_sequence = attrgetter("id")
_by_time = attrgetter("available_at", "id")


class _Read:
    """A fetch statement, and its variant with a range of times."""

    def __init__(self, statements: PostgresStatements, name: str) -> None:
        self.plain = statements.get(name)
        self.ranged = statements.get(name, "in_range")

    def within(self, bounds: Bounds) -> tuple[str, tuple[object, ...]]:
        """The statement for these bounds, and the times that it takes."""
        if bounds.recorded_after or bounds.recorded_before:
            return self.ranged, (bounds.recorded_after, bounds.recorded_before)
        return self.plain, ()


class PostgresMessages:
    """See `pillarbox.core.fetch.Messages`. Its connection keeps one plan for each statement."""

    def __init__(
        self, connection: PostgresStoreConnection, statements: PostgresStatements, *, statement_timeout: float
    ) -> None:
        self._connection = connection
        self.low_water_marks = LowWaterMarks(connection, statements, statement_timeout=statement_timeout)
        self._ready = _Read(statements, "fetch_ready")
        self._ready_from_marks = statements.get("fetch_ready", "from_low_water_marks")
        self._due = _Read(statements, "fetch_due")
        self._parked = _Read(statements, "fetch_parked")
        self._waiting = _Read(statements, "fetch_waiting")
        self._earlier = statements.get("has_earlier")
        self._orphaned_queues = statements.get("find_orphaned_queues")
        self._parked_destinations = statements.get("parked_destinations")

    async def fetch(self, query: FetchQuery) -> Fetched:
        match query:
            case Ready():
                return await self._fetch_ready(query.lanes, query.bounds)
            case Due():
                found = await self._read(self._due, query.lanes, query.bounds)
                found.sort(key=_by_time)
                return found
            case Parked():
                return await self._read(self._parked, query.lanes, query.bounds, literal(query.destinations))
            case NextInQueues():
                lanes = [queue.lane for queue in query.queues]
                keys = [queue.key for queue in query.queues]
                destinations = [queue.destination for queue in query.queues]
                return await self._read(self._waiting, lanes, query.bounds, literal(keys), literal(destinations))
            case _:
                assert_never(query)

    async def _fetch_ready(self, lanes: Sequence[int], bounds: Bounds) -> Fetched:
        sql, more = self._ready.within(bounds)
        if more:
            return await self._fetch(sql, lanes, bounds, *more)
        if (marks := await self.low_water_marks.known(lanes)) is not None:
            sql, more = self._ready_from_marks, marks
        began = time.monotonic()
        try:
            found = await self._fetch(sql, lanes, bounds, *more)
        except StoreUnavailableError:
            self.low_water_marks.fetched((), seconds=time.monotonic() - began)
            raise
        self.low_water_marks.fetched(found, seconds=time.monotonic() - began)
        return found

    async def _read(self, read: _Read, lanes: Sequence[int], bounds: Bounds, *more: object) -> Fetched:
        sql, times = read.within(bounds)
        return await self._fetch(sql, lanes, bounds, *more, *times)

    async def _fetch(self, sql: str, lanes: Sequence[int], bounds: Bounds, *more: object) -> Fetched:
        in_flight = _by_destination(bounds.in_flight)
        rows = await self._connection.fetch(
            sql,
            literal(lanes),
            bounds.quota,
            bounds.limit,
            bounds.max_bytes,
            _ANY_SIZE if bounds.alone else 0,
            literal(in_flight.values()),
            literal(in_flight),
            *more,
        )
        left_out = [row for row in rows if row["payload"] is None]
        found = Fetched(map(message_of, [row for row in rows if row["payload"] is not None] if left_out else rows))
        if left_out:
            found.left_out = message_of(left_out[0]).without_content()
        found.sort(key=_by_sequence)
        return found

    async def earlier(self, queries: Sequence[EarlierQuery]) -> list[bool]:
        rows = await self._connection.fetch(
            self._earlier,
            literal(query.lane for query in queries),
            literal(query.key for query in queries),
            literal(query.destination for query in queries),
            literal(query.id for query in queries),
        )
        return [row["must_wait"] for row in rows]

    async def orphaned_queues(
        self, lanes: Sequence[int], *, limit: int, after: KeyQueue | None = None
    ) -> OrphanedQueues:
        rows = await self._connection.fetch(self._orphaned_queues, literal(lanes), *(after or _BEFORE_ALL), limit)
        seen = [KeyQueue(row["lane"], row["key"], row["destination"]) for row in rows]
        queues = [queue for queue, row in zip(seen, rows, strict=True) if row["orphaned"]]
        return OrphanedQueues(queues, seen[-1] if len(seen) == limit else None)

    async def parked_destinations(self, lanes: Sequence[int]) -> list[str]:
        rows = await self._connection.fetch(self._parked_destinations, literal(lanes))
        return [row["destination"] for row in rows]


def _by_destination(positions: Collection[tuple[int, str]]) -> dict[str, str]:
    """The ids of each destination, as PostgreSQL writes an array."""
    ids: dict[str, list[int]] = {destination: [] for _, destination in positions}
    if len(ids) == 1:  # as where every message is fetched before its destination is known
        ids = {destination: [number for number, _ in positions] for destination in ids}
    else:
        for number, destination in positions:
            ids[destination].append(number)
    return {destination: literal(found) for destination, found in ids.items()}
