"""Copies of what was delivered: found along an index, copied with how far that is in one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from typing import Any

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
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.events import EVER, NEVER
from pillarbox.stores.sqlite.events import written as stamp
from pillarbox.stores.sqlite.moments import moment
from pillarbox.stores.sqlite.statements import Statements

_NARROWED: dict[str | None, tuple[str, ...]] = {
    "event": ("of_event",),
    "key": ("of_key",),
    "type": ("of_type",),
    None: (),
}
# Of a key or an event there is little to bring into the order of delivery; of a type there may be everything.
_IN_ORDER = _NARROWED | {"type": ()}


class SqliteReplays:
    """See `pillarbox.admin.replay.Replays`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._count = {index: statements.get("replay_count", *narrowed) for index, narrowed in _NARROWED.items()}
        self._chosen = {index: statements.get("replay_next", *narrowed) for index, narrowed in _IN_ORDER.items()}
        self._begin = statements.get("add_audit_entry")
        self._find = statements.get("replay_find")
        self._copy = statements.get("replay_copy")
        self._move = statements.get("replay_progress")

    async def count(self, plan: Replay, *, enough: int, look: int, after: Position | None = None) -> Counted:
        asked = _asked(plan)
        given = asked | {
            "recorded_at": stamp(after.recorded_at) if after else asked["since"],
            "id": after.id if after else 0,
            "place": after.destination if after else "",
            "look": look,
        }

        def work(db: sqlite3.Connection) -> Counted:
            found = 0
            # Closed in time, as below.
            with closing(db.execute(self._count[plan.index], given)) as rows:
                for number, (recorded_at, *rest, wanted) in enumerate(rows, 1):
                    found += wanted
                    if found == enough:
                        break
                    if number == look:
                        return Counted(found, Position(moment(recorded_at), *rest))
            return Counted(found, None)

        return await self._connection.read(work)

    async def chosen(self, plan: Replay, *, limit: int, after: Place, began: datetime | None = None) -> Chosen:
        given = _asked(plan) | {
            "published_at": stamp(after.published_at),
            "id": after.id,
            "place": after.destination,
            "began": stamp(began) if began else NEVER,
            "look": LOOK,
        }

        def work(db: sqlite3.Connection) -> Chosen:
            # Closed in time: a statement that is still running would keep the transaction from ending.
            with closing(db.execute(self._chosen[plan.index], given)) as rows:
                return chosen_of((_found(n, *row) for n, row in enumerate(rows, 1)), limit=limit)

        return await self._connection.read(work)

    async def begin(self, plan: Replay, *, by: str = "", expected: int | None = None) -> Progress:
        detail = written(seed=uuid7(), plan=plan, after=plan.start, done=False, expected=expected)
        given = {"by": by, "what": WHAT, "subject": plan.to or "", "count": 0, "detail": json.dumps(detail)}
        # Fetched to the end: a statement that is still running would keep the transaction from committing.
        [(number, began)] = await self._connection.write(lambda db: db.execute(self._begin, given).fetchall())
        return read(number, moment(began), 0, detail)

    async def find(self, number: int) -> Progress | None:
        return await self._connection.read(lambda db: self._found(db, number))

    async def copy(self, progress: Progress, rows: Sequence[Delivered], *, after: Place, done: bool) -> Progress | None:
        def work(db: sqlite3.Connection) -> Progress | None:
            now = self._found(db, progress.number)
            if now is None or (now.after, now.done) != (progress.after, progress.done):
                return None
            named = [
                [row.event_id, row.id, row.destination, stamp(row.published_at), progress.copy_id(row.event_id)]
                for row in rows
            ]
            copied = db.execute(self._copy, {"rows": json.dumps(named), "to": progress.plan.to}).rowcount
            moved = json.dumps(position(after, done=done))
            db.execute(self._move, {"number": progress.number, "copied": copied, "position": moved})
            return self._found(db, progress.number)

        return await self._connection.write(work)

    def _found(self, db: sqlite3.Connection, number: int) -> Progress | None:
        for began, copied, detail in db.execute(self._find, {"number": number}).fetchall():
            return read(number, moment(began), copied, json.loads(detail))
        return None


def _asked(plan: Replay) -> dict[str, object]:
    wanted = plan.wanted
    return {
        "type": wanted.event_type,
        "key": wanted.key,
        "destination": wanted.destination,
        "since": stamp(wanted.since) if wanted.since else EVER,
        "until": stamp(plan.until) if plan.until else NEVER,
        "events": json.dumps(plan.event_ids) if plan.event_ids else None,
        "to": plan.to,
    }


def _found(number: int, published_at: str, *facts: Any) -> FoundDelivered:
    *rest, wanted = facts
    return FoundDelivered(Delivered(moment(published_at), *rest), bool(wanted), number == LOOK)
