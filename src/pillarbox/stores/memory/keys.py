"""Keys that stand still, and those with the most to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from pillarbox.admin.keys import BEHIND, SAMPLE, BlockedKey, Head, HotKey, Line, Neighbour
from pillarbox.admin.listing import Position
from pillarbox.core.message import Held, Message, Status
from pillarbox.stores.memory.tables import Stored, Tables, concerns, verb


class MemoryKeys:
    """See `pillarbox.admin.keys.Keys`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @verb
    def blocked(self, *, limit: int = 100) -> list[BlockedKey]:
        heads = [stored for stored in self._tables.waiting.values() if stored.message.held == Held.BLOCKED]
        heads.sort(key=lambda stored: (stored.message.recorded_at, stored.message.id), reverse=True)
        blocked = [self._view(stored, since=stored.message.recorded_at) for stored in heads]
        return [*blocked, *sorted(self._retrying(), key=lambda key: key.since)][:limit]

    @verb
    def hot(self, *, limit: int = 20) -> list[HotKey]:
        first = sorted(
            (m.recorded_at, m.id, m.key) for m in (s.message for s in self._tables.waiting.values()) if m.key
        )
        counts = Counter(key for _, _, key in islice(first, SAMPLE))
        return [HotKey(*pair) for pair in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]]

    @verb
    def line(self, key: str, at: Position, *, limit: int = 5) -> Line:
        waiting = sorted(
            (stored.message for stored in self._tables.waiting.values() if stored.message.key == key),
            key=lambda m: m.id,
        )
        heads = (m for m in waiting if m.id < at.id and concerns(at.destination, m) and _is_head(m))
        later = sorted(self._later(key, at, waiting), key=lambda one: (one.id, one.destination))
        return Line(next(map(_head, heads), None), later[:limit])

    def _later(self, key: str, at: Position, waiting: list[Message]) -> Iterator[Neighbour]:
        for m in waiting:
            if m.id > at.id and m.destination in ("", at.destination) and not _is_delayed(m):
                yield _neighbour(m, Status.FAILED if m.held == Held.BLOCKED else Status.PENDING)
        for published in self._tables.history.values():
            m = published.stored.message
            if m.key == key and (m.recorded_at, m.id) > (at.recorded_at, at.id):
                yield _neighbour(m, Status.PUBLISHED)
        for buried in self._tables.dead.values():
            m = buried.stored.message
            if m.key == key and m.id > at.id:
                yield _neighbour(m, Status.FAILED)

    def _retrying(self) -> Iterator[BlockedKey]:
        now = self._tables.now()
        for stored in self._tables.waiting.values():
            m = stored.message
            if m.held is None and m.available_at is not None and m.available_at > now and m.failures and m.key:
                key = self._view(stored, since=stored.first_failed_at or m.recorded_at, next_try=m.available_at)
                if key.behind:
                    yield key

    def _view(self, stored: Stored, *, since: datetime, next_try: datetime | None = None) -> BlockedKey:
        m = stored.message
        line = () if m.key is None else (one.message for one in self._tables.of_key(m.lane, m.key))
        behind = sum(1 for one in line if one.held == Held.BEHIND and one.destination in (m.destination, ""))
        return BlockedKey(
            m.key, m.destination, m.event_id, m.event_type, stored.last_error, since, min(behind, BEHIND + 1), next_try
        )


def _is_head(m: Message) -> bool:
    return m.held in (Held.ASIDE, Held.BLOCKED) or (m.held is None and m.available_at is not None and m.failures > 0)


def _is_delayed(m: Message) -> bool:
    return m.held is None and m.available_at is not None and not m.failures


def _head(m: Message) -> Head:
    held = Held(m.held) if m.held else None
    return Head(m.event_id, m.destination, m.event_type, held, m.available_at if held is None else None)


def _neighbour(m: Message, status: Status) -> Neighbour:
    return Neighbour(m.recorded_at, m.id, m.destination, m.event_id, status, m.event_type)
