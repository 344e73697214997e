"""Statistics: what relays report, and the samples over time that operators read."""

from __future__ import annotations

from collections.abc import Mapping

from pillarbox.core.statistics import MAX_SAMPLES, Backlog, BacklogStatistics, OutcomeStatistics, Sample, to_json
from pillarbox.stores.memory.inspection import overview_of
from pillarbox.stores.memory.tables import Tables, atomic


class MemoryStatistics:
    """See `pillarbox.core.store.Statistics`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @atomic
    def add(self, relay: str, values: Mapping[str, OutcomeStatistics | BacklogStatistics]) -> None:
        now = self._tables.now()
        # A copy, read back from JSON: the relay continues to count in its own.
        self._tables.samples += [Sample.read(now, relay, to, to_json(one)) for to, one in values.items()]

    @atomic
    def backlog(self) -> Backlog:
        seen = overview_of(self._tables)
        alive = {relay.id for relay in seen.relays if relay.lease > 0}
        unowned = any(lane.owner not in alive for lane in seen.lanes)
        return Backlog(seen.backlog, seen.oldest, seen.dead, seen.recorded, unowned)


class MemorySamples:
    """See `pillarbox.admin.admin.Samples`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @atomic
    def since(self, seconds: float) -> list[Sample]:
        limit = self._tables.after(-seconds)
        return [sample for sample in self._tables.samples[-MAX_SAMPLES:] if sample.at >= limit]
