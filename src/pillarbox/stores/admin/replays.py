"""Replays: one statement finds a batch of delivered messages, one copies it and stores the position reached."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pillarbox.admin.listing import Position
from pillarbox.admin.replay import (
    HISTORY_SCANNED,
    WHAT,
    DeliveredRow,
    DeliveryPosition,
    FoundDelivered,
    Progress,
    Replay,
    ReplayBatch,
    ReplayCount,
    chosen_of,
    detail_of_replay,
    progress_detail,
    replay_of_entry,
)
from pillarbox.core.event import uuid7
from pillarbox.core.message import EARLIEST, LATEST
from pillarbox.stores.admin.engine import Engine, Parameters, StatementSteps

_INDEXES = ("event", "key", "type", None)


class SqlReplays:
    """See `pillarbox.admin.replay.Replays`."""

    def __init__(self, listing: Engine, engine: Engine) -> None:
        """`listing` plans each search anew, because the best plan depends on the filter."""
        self._listing = listing
        self._engine = engine
        self._count = {index: _narrowed(listing, "replay_count", index) for index in _INDEXES}
        # A key or an event has few rows to sort into the order of delivery; a type may have all rows.
        in_order = {index: None if index == "type" else index for index in _INDEXES}
        self._next = {index: _narrowed(listing, "replay_next", used) for index, used in in_order.items()}
        self._begin = engine.statement("add_audit_entry")
        self._find = engine.statement("replay_find")
        self._lock = engine.statement("replay_find", "locked")
        self._copy = engine.statement("replay_copy")
        self._progress = engine.statement("replay_progress")

    async def count(self, plan: Replay, *, enough: int, scan: int, after: Position | None = None) -> ReplayCount:
        recorded_at, number, destination = after or Position(plan.wanted.since or EARLIEST, 0, "")
        given = _asked(plan) | {
            "recorded_at": recorded_at,
            "id": number,
            "after_destination": destination,
            "scan": scan,
            "before_edge": scan - 1,
            "most": enough,
        }
        [(found, at, *edge)] = await self._listing.read(self._count[plan.index], given)
        if at is None or found == enough:
            return ReplayCount(found, None)
        return ReplayCount(found, Position(self._listing.decode_time(at), *edge))

    async def chosen(
        self, plan: Replay, *, limit: int, after: DeliveryPosition, began: datetime | None = None
    ) -> ReplayBatch:
        scan = max(HISTORY_SCANNED, limit + 1)
        given = _asked(plan) | {
            "published_at": after.published_at,
            "id": after.id,
            "after_destination": after.destination,
            "scan": scan,
            "before_edge": scan - 1,
            "most": limit + 1,
            "began": began or LATEST,
        }
        rows = await self._listing.read(self._next[plan.index], given)
        found = [
            FoundDelivered(DeliveredRow(self._listing.decode_time(at), *facts), bool(wanted), bool(edge))
            for at, *facts, wanted, edge in rows
        ]
        return chosen_of(found, limit=limit)

    async def begin(self, plan: Replay, *, by: str = "", expected: int | None = None) -> Progress:
        detail = detail_of_replay(seed=uuid7(), plan=plan, after=plan.start, done=False, expected=expected)
        given = {"by": by, "what": WHAT, "subject": plan.to or "", "count": 0, "detail": json.dumps(detail)}
        [(number, began)] = await self._engine.write(self._begin, given)
        return replay_of_entry(number, self._engine.decode_time(began), 0, detail)

    async def find(self, number: int) -> Progress | None:
        rows = await self._engine.read(self._find, {"number": number})
        return self._replay(number, *rows[0]) if rows else None

    async def copy(
        self, progress: Progress, rows: Sequence[DeliveredRow], *, after: DeliveryPosition, done: bool
    ) -> Progress | None:
        given = {
            "to": progress.plan.to,
            "event_ids": [row.event_id for row in rows],
            "ids": [row.id for row in rows],
            "destinations": [row.destination for row in rows],
            "times": [row.published_at for row in rows],
            "copy_ids": [progress.copy_id(row.event_id) for row in rows],
        }
        return await self._engine.transact(self._copied(progress, given, progress_detail(after, done=done)))

    def _copied(
        self, progress: Progress, given: Parameters, reached: Mapping[str, Any]
    ) -> StatementSteps[Progress | None]:
        expected = progress_detail(progress.after, done=progress.done)
        for began, copied, text in (yield self._lock, {"number": progress.number}):
            detail = json.loads(text)
            # Of two processes that resume the same replay, the second waits for the lock and finds another position.
            if all(detail[name] == value for name, value in expected.items()):
                copies = len((yield self._copy, given))
                detail |= reached
                stored = {"number": progress.number, "copied": copies, "detail": json.dumps(detail)}
                yield self._progress, stored
                return replay_of_entry(progress.number, self._engine.decode_time(began), copied + copies, detail)
        return None

    def _replay(self, number: int, began: Any, copied: int, detail: str) -> Progress:
        return replay_of_entry(number, self._engine.decode_time(began), copied, json.loads(detail))


def _narrowed(engine: Engine, name: str, index: str | None) -> str:
    return engine.statement(name) if index is None else engine.statement(name, f"of_{index}")


def _asked(plan: Replay) -> dict[str, object]:
    wanted = plan.wanted
    return {
        "type": wanted.event_type,
        "key": wanted.key,
        "destination": wanted.destination,
        "since": wanted.since or EARLIEST,
        "until": plan.until or LATEST,
        "events": list(plan.event_ids) or None,
        "to": plan.to,
    }
