"""Blocked and busiest ordering keys, and the events around a position of a key."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.admin.keys import (
    NEXT_SCANNED,
    QUEUES_SCANNED,
    SAMPLED,
    WAITING_COUNTED,
    BlockedKey,
    BusiestKey,
    FirstPending,
    Neighbour,
    QueueView,
)
from pillarbox.admin.listing import Position
from pillarbox.admin.states import EventState
from pillarbox.core.message import Held
from pillarbox.stores.admin.engine import Engine, ResultRow, decode_optional_time


class SqlKeys:
    """See `pillarbox.admin.keys.Keys`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._blocked = engine.statement("keys_blocked")
        self._busiest = engine.statement("keys_busiest")
        self._queue = engine.statement("keys_queue")

    async def blocked(self, *, limit: int = 100) -> list[BlockedKey]:
        given = {"limit": limit, "most": WAITING_COUNTED, "beyond": WAITING_COUNTED + 1, "queues": QUEUES_SCANNED}
        rows = await self._engine.read(self._blocked, given)
        return [
            BlockedKey._make(
                [*facts, self._engine.decode_time(since), waiting, decode_optional_time(self._engine, next_attempt)]
            )
            for *facts, since, waiting, next_attempt in rows
        ]

    async def busiest(self, *, limit: int = 20) -> list[BusiestKey]:
        return [BusiestKey(*row) for row in await self._engine.read(self._busiest, {"limit": limit, "most": SAMPLED})]

    async def queue(self, key: str, at: Position, *, limit: int = 5) -> QueueView:
        given = {
            "key": key,
            "recorded_at": at.recorded_at,
            "id": at.id,
            "destination": at.destination,
            "limit": limit,
            "scan": NEXT_SCANNED,
        }
        return self._view(await self._engine.read(self._queue, given))

    def _view(self, rows: Sequence[ResultRow]) -> QueueView:
        first: FirstPending | None = None
        later: list[Neighbour] = []
        for is_first, recorded_at, number, destination, event_id, state, event_type, held, next_attempt in rows:
            if is_first:
                until = decode_optional_time(self._engine, next_attempt)
                first = FirstPending(event_id, destination, event_type, Held(held) if held else None, until)
            else:
                since = self._engine.decode_time(recorded_at)
                later.append(Neighbour(since, number, destination, event_id, EventState(state), event_type))
        return QueueView(first, later)
