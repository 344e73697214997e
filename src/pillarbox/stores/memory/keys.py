"""Keys that stand still, and those with the most to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from pillarbox.core.keys import BEHIND, SAMPLE, BlockedKey, HotKey
from pillarbox.core.message import Held
from pillarbox.stores.memory.tables import Stored, Tables, verb


class MemoryKeys:
    """See `pillarbox.core.keys.Keys`."""

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
