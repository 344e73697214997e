"""Blocked and busiest ordering keys, and what is around a place in a key."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.admin.keys import BEHIND, LINES, NEXT, SAMPLE, BlockedKey, Head, HotKey, Line, Neighbour
from pillarbox.admin.listing import Position
from pillarbox.core.message import Held, Status
from pillarbox.stores.admin.engine import Engine, Row, moment_or_none


class SqlKeys:
    """See `pillarbox.admin.keys.Keys`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._blocked = engine.statement("keys_blocked")
        self._hot = engine.statement("keys_busiest")
        self._line = engine.statement("keys_queue")

    async def blocked(self, *, limit: int = 100) -> list[BlockedKey]:
        rows = await self._engine.read(self._blocked, {"limit": limit, "most": BEHIND, "lines": LINES})
        return [
            BlockedKey._make([*facts, self._engine.moment(since), behind, moment_or_none(self._engine, next_try)])
            for *facts, since, behind, next_try in rows
        ]

    async def hot(self, *, limit: int = 20) -> list[HotKey]:
        return [HotKey(*row) for row in await self._engine.read(self._hot, {"limit": limit, "most": SAMPLE})]

    async def line(self, key: str, at: Position, *, limit: int = 5) -> Line:
        given = {
            "key": key,
            "recorded_at": at.recorded_at,
            "id": at.id,
            "destination": at.destination,
            "limit": limit,
            "walk": NEXT,
        }
        return self._line_of(await self._engine.read(self._line, given))

    def _line_of(self, rows: Sequence[Row]) -> Line:
        head, later = None, []
        for is_head, recorded_at, place, destination, event_id, status, event_type, held, next_try in rows:
            if is_head:
                until = moment_or_none(self._engine, next_try)
                head = Head(event_id, destination, event_type, Held(held) if held else None, until)
            else:
                since = self._engine.moment(recorded_at)
                later.append(Neighbour(since, place, destination, event_id, Status(status), event_type))
        return Line(head, later)
