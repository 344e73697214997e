"""What there is to do. A look picks rows, in order and within its bounds, then fetches them from the same snapshot.

It walks over nothing that waits, locks nothing, and never continues from a position.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, assert_never

from pillarbox.core.looks import BehindHeads, Bounds, Due, Fetched, Look, PutAside, Ready
from pillarbox.core.message import Message, Probe, Slot
from pillarbox.core.store import Headless
from pillarbox.stores.sqlite.connection import Connection, legible_rows
from pillarbox.stores.sqlite.lanes import LANE
from pillarbox.stores.sqlite.moments import moment, moment_or_none
from pillarbox.stores.sqlite.statements import Statements
from pillarbox.stores.sqlite.wakeup import Bell


class _Read:
    """A read and its like with a range of times; `row` is what both call a row that they pick."""

    def __init__(self, statements: Statements, name: str, *, row: str) -> None:
        self.plain = statements.get(name)
        self.ranged = statements.ranged(name, row=row)


class SqliteMessages:
    """See `pillarbox.core.store.Messages`."""

    def __init__(self, connection: Connection, statements: Statements, bell: Bell) -> None:
        self._connection = connection
        self._bell = bell
        self._ready = _Read(statements, "read_ready", row="m")
        self._due = _Read(statements, "read_due", row="m")
        self._aside = _Read(statements, "read_aside", row="a")
        self._behind = _Read(statements, "read_behind", row="b")
        self._fetch = statements.get("fetch")
        self._holds_back = statements.get("holds_back")
        self._left_out = statements.get("fetch_left_out")
        self._earlier = statements.get("earlier")
        self._headless = statements.get("headless")
        self._put_aside = statements.get("aside")

    async def read(self, look: Look) -> Fetched:
        match look:
            case Ready(lanes=lanes, bounds=bounds):
                pick, given = self._ready, _within_one_lane(lanes, bounds)
            case Due(lanes=lanes, bounds=bounds):
                pick, given = self._due, _within_one_lane(lanes, bounds)
            case PutAside(lanes=lanes, destinations=destinations, bounds=bounds):
                pick = self._aside
                given = _within_one_lane(lanes, bounds) | {"destinations": json.dumps(list(destinations))}
            case BehindHeads(slots=slots, bounds=bounds):
                pick = self._behind
                lines = [[slot.key, slot.destination] for slot in slots if slot.lane == LANE]
                given = {"limit": bounds.limit, "quota": bounds.quota, "slots": json.dumps(lines)}
            case _:
                assert_never(look)
        given["in_hand"] = json.dumps([f"{place} {destination}" for place, destination in bounds.in_hand])
        given |= {"after": _time(bounds.recorded_after), "before": _time(bounds.recorded_before)}
        sql = pick.ranged if bounds.has_range else pick.plain

        def work(db: sqlite3.Connection) -> Fetched:
            if isinstance(look, Ready):
                self._bell.heed(db)
            rows, left_out = _cut(db.execute(sql, given), bounds)
            # What is read on in a line was found to have nothing in front of it but its own line.
            judge = not isinstance(look, BehindHeads) and db.execute(self._holds_back).fetchone() == (1,)
            asked = {"rows": json.dumps(rows), "judge": judge}
            found = {row[0]: _message(row) for row in legible_rows(db, self._fetch, asked)}
            fetched = Fetched(found[row] for row in rows)
            if left_out is not None:
                fetched.left_out = _message(db.execute(self._left_out, {"row": left_out}).fetchone())
            return fetched

        return await self._connection.read(work)

    async def earlier(self, probes: Sequence[Probe]) -> list[bool]:
        given = {"probes": json.dumps([[probe.key, probe.destination, probe.id] for probe in probes])}
        answers = await self._connection.read(lambda db: db.execute(self._earlier, given).fetchall())
        return [bool(answer) for (answer,) in answers]

    async def headless(self, lanes: Sequence[int], *, limit: int, after: Slot | None = None) -> Headless:
        if LANE not in lanes:
            return Headless([], None)
        given = {
            "key": after.key if after else None,
            "destination": after.destination if after else None,
            "limit": limit,
        }
        rows = await self._connection.read(lambda db: db.execute(self._headless, given).fetchall())
        seen = [Slot(LANE, key, destination) for key, destination, _ in rows]
        slots = [slot for slot, (_, _, headless) in zip(seen, rows, strict=True) if headless]
        return Headless(slots, seen[-1] if seen and len(seen) == limit else None)

    async def aside(self, lanes: Sequence[int]) -> list[str]:
        if LANE not in lanes:
            return []
        rows = await self._connection.read(lambda db: db.execute(self._put_aside).fetchall())
        return [destination for (destination,) in rows]


def _within_one_lane(lanes: Sequence[int], bounds: Bounds) -> dict[str, Any]:
    return {"limit": min(bounds.limit, bounds.quota) if LANE in lanes else 0}


def _time(at: datetime | None) -> str | None:
    """The text with which `recorded_at` is compared, whose milliseconds a time in between two must not cut in half."""
    if at is None:
        return None
    utc = at.astimezone(UTC).replace(tzinfo=None)
    # A letter beyond the Z that ends the text of a time: later than that millisecond, earlier than the next.
    return utc.isoformat(timespec="milliseconds") + ("Z" if utc.microsecond % 1000 == 0 else "~")


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


def _message(row: tuple[Any, ...]) -> Message:
    _, *facts, occurred_at, recorded_at, available_at, held, attempts, tries, behind = row
    times = (
        moment(occurred_at),
        moment(recorded_at),
        moment_or_none(available_at),
    )
    return Message._make((*facts, *times, held, attempts, tries, bool(behind)))
