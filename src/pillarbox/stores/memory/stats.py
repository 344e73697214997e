"""Samples over time: what relays carried and how much lay there."""

from __future__ import annotations

from collections.abc import Mapping

from pillarbox.core.stats import MOST, Carried, Level, Sample, written
from pillarbox.stores.memory.tables import Tables, verb


class MemoryStats:
    """See `pillarbox.core.stats.Stats`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @verb
    def add(self, relay: str, figures: Mapping[str, Carried | Level]) -> None:
        now = self._tables.now()
        # Read back from what would be written: a relay goes on counting in its own.
        self._tables.samples += [Sample.read(now, relay, to, written(one)) for to, one in figures.items()]

    @verb
    def since(self, seconds: float) -> list[Sample]:
        limit = self._tables.after(-seconds)
        return [sample for sample in self._tables.samples[-MOST:] if sample.at >= limit]

    @verb
    def recorded(self) -> int:
        return self._tables.recorded
