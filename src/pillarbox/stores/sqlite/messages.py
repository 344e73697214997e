"""Fetches messages. A fetch picks rows, in order and within its bounds, and reads them from the same snapshot: in one
statement or, if that would take too much memory, row by row.

It scans no messages on hold, locks nothing, and never continues from a position.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, assert_never

from pillarbox.core.fetch import Bounds, Due, Fetched, FetchQuery, NextInQueues, OrphanedQueues, Parked, Ready
from pillarbox.core.message import EarlierQuery, KeyQueue, Message, message_of
from pillarbox.dialects.sqlite import encode_time
from pillarbox.stores.sqlite.connection import SqliteStoreConnection, rows_with_valid_text
from pillarbox.stores.sqlite.lanes import LANE
from pillarbox.stores.sqlite.statements import SqliteStatements
from pillarbox.stores.sqlite.timestamps import decode_optional_time, decode_time
from pillarbox.stores.sqlite.wakeup import SqliteArrivals

TOGETHER = 4 * 1024 * 1024
"""Bytes of messages that are fetched in one statement, which copies them a few times."""

PAYLOAD, OCCURRED_AT, RECORDED_AT, AVAILABLE_AT, MUST_WAIT = (
    Message._fields.index(name) for name in ("payload", "occurred_at", "recorded_at", "available_at", "must_wait")
)


class _Read:
    """The statements that pick rows and that fetch what they pick at once, and their variants with a range of times."""

    def __init__(self, statements: SqliteStatements, name: str) -> None:
        self.plain = statements.get(f"pick_{name}")
        self.ranged = statements.get(f"pick_{name}", "in_range")
        self.plain_at_once = statements.get(f"fetch_{name}")
        self.ranged_at_once = statements.get(f"fetch_{name}", "in_range")


class SqliteMessages:
    """See `pillarbox.core.fetch.Messages`."""

    def __init__(
        self, connection: SqliteStoreConnection, statements: SqliteStatements, arrivals: SqliteArrivals
    ) -> None:
        self._connection = connection
        self._arrivals = arrivals
        self._ready = _Read(statements, "ready")
        self._due = _Read(statements, "due")
        self._parked = _Read(statements, "parked")
        self._waiting = _Read(statements, "waiting")
        self._fetch = statements.get("fetch_rows")
        self._left_out = statements.get("fetch_oversized")
        self._earlier = statements.get("has_earlier")
        self._orphaned_queues = statements.get("find_orphaned_queues")
        self._parked_destinations = statements.get("parked_destinations")

    async def fetch(self, query: FetchQuery) -> Fetched:
        match query:
            case Ready(lanes=lanes, bounds=bounds):
                pick, given = self._ready, _within_one_lane(lanes, bounds)
            case Due(lanes=lanes, bounds=bounds):
                pick, given = self._due, _within_one_lane(lanes, bounds)
            case Parked(lanes=lanes, destinations=destinations, bounds=bounds):
                pick = self._parked
                given = _within_one_lane(lanes, bounds) | {"destinations": json.dumps(list(destinations))}
            case NextInQueues(queues=queues, bounds=bounds):
                pick = self._waiting
                names = [[queue.key, queue.destination] for queue in queues if queue.lane == LANE]
                given = {"limit": bounds.limit, "quota": bounds.quota, "queues": json.dumps(names)}
            case _:
                assert_never(query)
        given["unrouted"] = json.dumps([sequence for sequence, destination in bounds.in_flight if not destination])
        given["in_flight"] = json.dumps(
            [f"{sequence} {destination}" for sequence, destination in bounds.in_flight if destination]
        )
        given |= {"after": _time(bounds.recorded_after), "before": _time(bounds.recorded_before)}
        # Queues that are fetched further have no earlier message than their own waiting ones.
        given |= {"check_order": not isinstance(query, NextInQueues), "most": min(bounds.max_bytes, TOGETHER)}
        read, at_once = (
            (pick.ranged, pick.ranged_at_once)
            if bounds.recorded_after or bounds.recorded_before
            else (pick.plain, pick.plain_at_once)
        )

        def small(db: sqlite3.Connection) -> Fetched | None:
            [(count, facts, payloads, arrivals)] = rows_with_valid_text(db, at_once, given)
            if count and facts is None:
                return None
            if isinstance(query, Ready):
                self._arrivals.fetched(arrivals)
            return Fetched(_apart(json.loads(facts), payloads) if count else ())

        def large(db: sqlite3.Connection) -> Fetched:
            if isinstance(query, Ready):
                self._arrivals.has_new(db)
            rows, left_out = _cut(db.execute(read, given), bounds)
            fetch = {"rows": json.dumps(rows), "check_order": given["check_order"]}
            fetched = Fetched(
                _message(json.loads(facts), payload) for facts, payload in rows_with_valid_text(db, self._fetch, fetch)
            )
            if left_out is not None:
                facts, payload = db.execute(self._left_out, {"row": left_out}).fetchone()
                fetched.left_out = _message(json.loads(facts), payload)
            return fetched

        fetched = await self._connection.ask(small)
        return await self._connection.read(large) if fetched is None else fetched

    async def earlier(self, queries: Sequence[EarlierQuery]) -> list[bool]:
        given = {"queries": json.dumps([[query.key, query.destination, query.id] for query in queries])}
        answers = await self._connection.read(lambda db: db.execute(self._earlier, given).fetchall())
        return [bool(answer) for (answer,) in answers]

    async def orphaned_queues(
        self, lanes: Sequence[int], *, limit: int, after: KeyQueue | None = None
    ) -> OrphanedQueues:
        if LANE not in lanes:
            return OrphanedQueues([], None)
        given = {
            "key": after.key if after else None,
            "destination": after.destination if after else None,
            "limit": limit,
        }
        rows = await self._connection.read(lambda db: db.execute(self._orphaned_queues, given).fetchall())
        seen = [KeyQueue(LANE, key, destination) for key, destination, _ in rows]
        queues = [queue for queue, (_, _, orphaned_queues) in zip(seen, rows, strict=True) if orphaned_queues]
        return OrphanedQueues(queues, seen[-1] if seen and len(seen) == limit else None)

    async def parked_destinations(self, lanes: Sequence[int]) -> list[str]:
        if LANE not in lanes:
            return []
        rows = await self._connection.read(lambda db: db.execute(self._parked_destinations).fetchall())
        return [destination for (destination,) in rows]


def _within_one_lane(lanes: Sequence[int], bounds: Bounds) -> dict[str, Any]:
    return {"limit": min(bounds.limit, bounds.quota) if LANE in lanes else 0}


def _time(at: datetime | None) -> str | None:
    """The text with which `recorded_at` is compared, which has milliseconds only."""
    if at is None:
        return None
    text = encode_time(utc := at.astimezone(UTC))
    # "~" sorts after the "Z" that ends a time: later than that millisecond, earlier than the next.
    return text if utc.microsecond % 1000 == 0 else text.removesuffix("Z") + "~"


def _cut(picked: Iterable[tuple[int, int]], bounds: Bounds) -> tuple[list[int], int | None]:
    """The rows that fit, and the first that does not."""
    rows: list[int] = []
    total = 0
    for row, size in picked:
        total += size
        if total > bounds.max_bytes and (rows or not bounds.alone):
            return rows, row
        rows.append(row)
    return rows, None


def _apart(all_facts: list[list[Any]], payloads: bytes) -> list[Message]:
    """The messages, whose payloads are concatenated."""
    messages: list[Message] = []
    end = 0
    for facts in all_facts:
        begin, end = end, end + facts[PAYLOAD]
        messages.append(_message(facts, payloads[begin:end]))
    return messages


def _message(facts: list[Any], payload: bytes) -> Message:
    facts[PAYLOAD] = payload
    facts[OCCURRED_AT] = decode_time(facts[OCCURRED_AT])
    facts[RECORDED_AT] = decode_time(facts[RECORDED_AT])
    facts[AVAILABLE_AT] = decode_optional_time(facts[AVAILABLE_AT])
    facts[MUST_WAIT] = bool(facts[MUST_WAIT])
    return message_of(facts)
