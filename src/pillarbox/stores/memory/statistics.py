"""Statistics: what relays report, and the samples over time that operators read."""

from __future__ import annotations

from collections.abc import Mapping

from pillarbox.core.statistics import MOST, Backlog, BacklogStatistics, DeliveryStatistics, Sample, to_json
from pillarbox.stores.memory.inspection import overview_of
from pillarbox.stores.memory.tables import Tables, verb


class MemoryStatistics:
    """See `pillarbox.core.store.Statistics`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @verb
    def add(self, relay: str, values: Mapping[str, DeliveryStatistics | BacklogStatistics]) -> None:
        now = self._tables.now()
        # Read back from what would be written: a relay goes on counting in its own.
        self._tables.samples += [Sample.read(now, relay, to, to_json(one)) for to, one in values.items()]

    @verb
    def backlog(self) -> Backlog:
        seen = overview_of(self._tables)
        alive = {relay.id for relay in seen.relays if relay.lease > 0}
        unowned = any(lane.owner not in alive for lane in seen.lanes)
        return Backlog(seen.backlog, seen.oldest, seen.dead, seen.recorded, unowned)


class MemorySamples:
    """See `pillarbox.admin.admin.Samples`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @verb
    def since(self, seconds: float) -> list[Sample]:
        limit = self._tables.after(-seconds)
        return [sample for sample in self._tables.samples[-MOST:] if sample.at >= limit]
