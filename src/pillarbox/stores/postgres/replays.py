"""Copies of what was delivered: one statement looks for them, one copies them and writes how far that is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from pillarbox.admin.listing import Position
from pillarbox.admin.replay import (
    LOOK,
    WHAT,
    Chosen,
    Counted,
    Delivered,
    FoundDelivered,
    Place,
    Progress,
    Replay,
    chosen_of,
    position,
    read,
    written,
)
from pillarbox.core.event import uuid7
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import Statements

# The driver takes these for the ends of time.
_EVER, _NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_NARROWED: dict[str | None, tuple[str, ...]] = {
    "event": ("of_event",),
    "key": ("of_key",),
    "type": ("of_type",),
    None: (),
}
# Of a key or an event there is little to bring into the order of delivery; of a type there may be everything.
_IN_ORDER = _NARROWED | {"type": ()}


class PostgresReplays:
    """See `pillarbox.admin.replay.Replays`. `reading` plans each look anew."""

    def __init__(self, reading: Connection, writing: Connection, statements: Statements) -> None:
        self._reading = reading
        self._writing = writing
        self._count = {index: statements.get("replay_count", *narrowed) for index, narrowed in _NARROWED.items()}
        self._chosen = {index: statements.get("replay_next", *narrowed) for index, narrowed in _IN_ORDER.items()}
        self._begin = statements.get("add_audit_entry")
        self._find = statements.get("replay_find")
        self._copy = statements.get("replay_copy")

    async def count(self, plan: Replay, *, enough: int, look: int, after: Position | None = None) -> Counted:
        behind = after or Position(plan.wanted.since or _EVER, 0, "")
        [(found, *edge)] = await self._reading.fetch(self._count[plan.index], *behind, *_asked(plan), look, enough)
        return Counted(found, None if None in edge or found == enough else Position(*edge))

    async def chosen(self, plan: Replay, *, limit: int, after: Place, began: datetime | None = None) -> Chosen:
        sql, look = self._chosen[plan.index], max(LOOK, limit + 1)
        rows = await self._reading.fetch(sql, *after, *_asked(plan), look, limit + 1, began or _NEVER)
        found = [FoundDelivered(Delivered._make(facts), fits, edge) for *facts, fits, edge in rows]
        return chosen_of(found, limit=limit)

    async def begin(self, plan: Replay, *, by: str = "", expected: int | None = None) -> Progress:
        detail = written(seed=uuid7(), plan=plan, after=plan.start, done=False, expected=expected)
        [(number, began)] = await self._writing.fetch(self._begin, by, WHAT, plan.to or "", 0, json.dumps(detail))
        return read(number, began, 0, detail)

    async def find(self, number: int) -> Progress | None:
        for began, copied, detail in await self._writing.fetch(self._find, number):
            return read(number, began, copied, json.loads(detail))
        return None

    async def copy(self, progress: Progress, rows: Sequence[Delivered], *, after: Place, done: bool) -> Progress | None:
        moved = await self._writing.fetch(
            self._copy,
            progress.number,
            json.dumps(position(progress.after, done=progress.done)),
            json.dumps(position(after, done=done)),
            progress.plan.to,
            [row.event_id for row in rows],
            [row.id for row in rows],
            [row.destination for row in rows],
            [row.published_at for row in rows],
            [progress.copy_id(row.event_id) for row in rows],
        )
        for began, copied, detail in moved:
            return read(progress.number, began, copied, json.loads(detail))
        return None


def _asked(plan: Replay) -> tuple[object, ...]:
    wanted = plan.wanted
    return (
        wanted.event_type,
        wanted.key,
        wanted.destination,
        wanted.since or _EVER,
        plan.until or _NEVER,
        list(plan.event_ids) or None,
        plan.to is not None,
    )
