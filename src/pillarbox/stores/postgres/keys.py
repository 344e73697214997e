"""Keys that stand still, and those with the most to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pillarbox.admin.keys import BEHIND, LINES, NEXT, SAMPLE, BlockedKey, Head, HotKey, Line, Neighbour
from pillarbox.admin.listing import Position
from pillarbox.core.message import Held, Status
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import Statements


class PostgresKeys:
    """See `pillarbox.admin.keys.Keys`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._blocked = statements.get("keys_blocked")
        self._hot = statements.get("keys_busiest")
        self._line = statements.get("keys_queue")

    async def blocked(self, *, limit: int = 100) -> list[BlockedKey]:
        return [BlockedKey._make(row) for row in await self._connection.fetch(self._blocked, limit, BEHIND, LINES)]

    async def hot(self, *, limit: int = 20) -> list[HotKey]:
        return [HotKey._make(row) for row in await self._connection.fetch(self._hot, limit, SAMPLE)]

    async def line(self, key: str, at: Position, *, limit: int = 5) -> Line:
        return _line_of(await self._connection.fetch(self._line, key, *at, limit, NEXT))


def _line_of(rows: Iterable[Iterable[Any]]) -> Line:
    head, later = None, []
    for is_head, recorded_at, place, destination, event_id, status, event_type, held, next_try in rows:
        if is_head:
            head = Head(event_id, destination, event_type, Held(held) if held else None, next_try)
        else:
            later.append(Neighbour(recorded_at, place, destination, event_id, Status(status), event_type))
    return Line(head, later)
