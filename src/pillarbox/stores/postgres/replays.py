"""Copies of what was delivered: one statement looks for them, one copies them and writes how far that is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from pillarbox.core.identity import uuid7
from pillarbox.core.replay import (
    LOOK,
    Chosen,
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
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import Statements

# The driver takes these for the ends of time.
_EVER, _NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class PostgresReplays:
    """See `pillarbox.core.replay.Replays`. `reading` plans each look anew."""

    def __init__(self, reading: Connection, writing: Connection, statements: Statements) -> None:
        self._reading = reading
        self._writing = writing
        self._chosen = {
            name: statements.narrowed("replay_chosen", narrowed=name)
            for name in ("replay_of_event", "replay_of_key", None)
        }
        self._begin = statements.get("replay_begin")
        self._find = statements.get("replay_find")
        self._copy = statements.get("replay_copy")

    async def chosen(self, plan: Replay, *, limit: int, after: Place, began: datetime | None = None) -> Chosen:
        wanted = plan.wanted
        of_one = "replay_of_event" if plan.event_ids else None if wanted.key is None else "replay_of_key"
        rows = await self._reading.fetch(
            self._chosen[of_one],
            *after,
            began or _NEVER,
            wanted.event_type,
            wanted.key,
            wanted.destination,
            wanted.since or _EVER,
            plan.until or _NEVER,
            list(plan.event_ids) or None,
            max(LOOK, limit + 1),
            limit + 1,
            plan.to is not None,
        )
        found = [FoundDelivered(Delivered._make(facts), fits, edge) for *facts, fits, edge in rows]
        return chosen_of(found, limit=limit)

    async def begin(self, plan: Replay, *, by: str = "") -> Progress:
        detail = written(seed=uuid7(), plan=plan, after=plan.start, done=False)
        [(number, began)] = await self._writing.fetch(self._begin, by, plan.to or "", json.dumps(detail))
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
