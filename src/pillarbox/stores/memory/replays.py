"""Copies of what was delivered: everything is at hand, so that a look is a look at all of it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from pillarbox.admin.listing import Position
from pillarbox.admin.replay import (
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
from pillarbox.core.event import REPLAY_OF, uuid7
from pillarbox.core.message import Message
from pillarbox.stores.memory.tables import Published, Stored, Tables, verb


class MemoryReplays:
    """See `pillarbox.admin.replay.Replays`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @verb
    def count(self, plan: Replay, *, enough: int, look: int, after: Position | None = None) -> Counted:
        return Counted(min(len(self._firsts(plan)), enough), None)

    @verb
    def chosen(self, plan: Replay, *, limit: int, after: Place, began: datetime | None = None) -> Chosen:
        left = [_delivered(published) for published in self._firsts(plan, began) if _place(published) > after]
        return chosen_of([FoundDelivered(row, True, False) for row in left], limit=limit)

    @verb
    def begin(self, plan: Replay, *, by: str = "", expected: int | None = None) -> Progress:
        detail = written(seed=uuid7(), plan=plan, after=plan.start, done=False, expected=expected)
        entry = self._tables.remember(by, WHAT, plan.to or "", count=0, **detail)
        return read(entry.id, entry.at, 0, detail)

    @verb
    def find(self, number: int) -> Progress | None:
        return self._find(number)

    @verb
    def copy(self, progress: Progress, rows: Sequence[Delivered], *, after: Place, done: bool) -> Progress | None:
        now = self._find(progress.number)
        if now is None or (now.after, now.done) != (progress.after, progress.done):
            return None
        names = {row.place: row for row in rows}
        found = {_place(published): published.stored.message for published in self._tables.history.values()}
        copied = sum(self._copy(found[place], progress) for place in names if place in found)
        entry = self._tables.audit[progress.number]
        detail = {**entry.detail, **position(after, done=done)}
        self._tables.audit[entry.id] = replace(entry, count=entry.count + copied, detail_json=json.dumps(detail))
        return self._find(progress.number)

    def _find(self, number: int) -> Progress | None:
        entry = self._tables.audit.get(number)
        return None if entry is None or entry.what != WHAT else read(entry.id, entry.at, entry.count, entry.detail)

    def _firsts(self, plan: Replay, began: datetime | None = None) -> Collection[Published]:
        """An event goes once to each place, whatever the number of its deliveries."""
        firsts: dict[tuple[str, str | None], Published] = {}
        for published in sorted(self._fitting(plan, began), key=_place):
            m = published.stored.message
            firsts.setdefault((m.event_id, None if plan.to is not None else m.destination), published)
        return firsts.values()

    def _fitting(self, plan: Replay, began: datetime | None) -> Iterator[Published]:
        for published in self._tables.history.values():
            if _fits(published.stored.message, plan) and (began is None or published.published_at <= began):
                yield published

    def _copy(self, m: Message, progress: Progress) -> bool:
        event_id = progress.copy_id(m.event_id)
        headers = {**m.headers, REPLAY_OF: m.headers.get(REPLAY_OF, m.event_id)}
        again = m._replace(
            id=self._tables.draw(),
            lane=self._tables.lane_of(m.key, event_id),
            event_id=event_id,
            destination=m.destination if progress.plan.to is None else progress.plan.to,
            headers_json=json.dumps(headers, ensure_ascii=False),
            recorded_at=self._tables.now(),
            available_at=None,
            held=None,
            attempts=0,
            tries=0,
        )
        if again.identity in self._tables.waiting:
            return False
        self._tables.put(Stored(message=again))
        return True


def _fits(m: Message, plan: Replay) -> bool:
    wanted = plan.wanted
    return (
        wanted.event_type in (None, m.event_type)
        and wanted.key in (None, m.key)
        and wanted.destination in (None, m.destination)
        and (wanted.since is None or m.recorded_at >= wanted.since)
        and (plan.until is None or m.recorded_at < plan.until)
        and (m.event_id in plan.event_ids if plan.event_ids else REPLAY_OF not in m.headers)
    )


def _place(published: Published) -> Place:
    m = published.stored.message
    return Place(published.published_at, m.id, m.destination)


def _delivered(published: Published) -> Delivered:
    return Delivered(*_place(published), published.stored.message.event_id, len(published.stored.message.payload))
