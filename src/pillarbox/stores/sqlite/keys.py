"""Keys that stand still, and those with the most to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pillarbox.admin.keys import BEHIND, LINES, NEXT, SAMPLE, BlockedKey, Head, HotKey, Line, Neighbour
from pillarbox.admin.listing import Position
from pillarbox.core.message import Held, Status
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.events import written
from pillarbox.stores.sqlite.moments import moment
from pillarbox.stores.sqlite.statements import Statements


class SqliteKeys:
    """See `pillarbox.admin.keys.Keys`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._blocked = statements.get("keys_blocked")
        self._hot = statements.get("keys_busiest")
        self._line = statements.get("keys_queue")

    async def blocked(self, *, limit: int = 100) -> list[BlockedKey]:
        given = {"limit": limit, "most": BEHIND, "lines": LINES}
        rows = await self._connection.read(lambda db: db.execute(self._blocked, given).fetchall())
        return [
            BlockedKey._make([*facts, moment(since), behind, next_try and moment(next_try)])
            for *facts, since, behind, next_try in rows
        ]

    async def hot(self, *, limit: int = 20) -> list[HotKey]:
        given = {"limit": limit, "most": SAMPLE}
        rows = await self._connection.read(lambda db: db.execute(self._hot, given).fetchall())
        return [HotKey._make(row) for row in rows]

    async def line(self, key: str, at: Position, *, limit: int = 5) -> Line:
        given = {
            "key": key,
            "recorded_at": written(at.recorded_at),
            "id": at.id,
            "destination": at.destination,
            "limit": limit,
            "walk": NEXT,
        }
        rows = await self._connection.read(lambda db: db.execute(self._line, given).fetchall())
        return _line_of(rows)


def _line_of(rows: Iterable[Iterable[Any]]) -> Line:
    head, later = None, []
    for is_head, recorded_at, place, destination, event_id, status, event_type, held, next_try in rows:
        if is_head:
            until = next_try and moment(next_try)
            head = Head(event_id, destination, event_type, Held(held) if held else None, until)
        else:
            since = moment(recorded_at)
            later.append(Neighbour(since, place, destination, event_id, Status(status), event_type))
    return Line(head, later)
