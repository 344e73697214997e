"""The part of the operators' half that the simulation and tests of applications need.

Dead letters are retried, edited and discarded; pending events are retried, discarded and rescheduled; destinations are
overridden. Everything else raises ConfigurationError.
"""

from __future__ import annotations

from pillarbox.admin.admin import NoAdmin
from pillarbox.stores.memory.dead_letters import MemoryDeadLetters
from pillarbox.stores.memory.events import MemoryEvents
from pillarbox.stores.memory.inspection import MemoryInspection
from pillarbox.stores.memory.requests import MemoryRequests
from pillarbox.stores.memory.statistics import MemorySamples
from pillarbox.stores.memory.tables import Tables


class MemoryAdmin(NoAdmin):
    """See `pillarbox.admin.admin.Admin`."""

    def __init__(self, tables: Tables) -> None:
        super().__init__("memory://")
        self._events = MemoryEvents(tables)
        self._dead_letters = MemoryDeadLetters(tables)
        self._requests = MemoryRequests(tables, self)
        self._inspection = MemoryInspection(tables)
        self._samples = MemorySamples(tables)

    @property
    def events(self) -> MemoryEvents:
        return self._events

    @property
    def dead_letters(self) -> MemoryDeadLetters:
        return self._dead_letters

    @property
    def requests(self) -> MemoryRequests:
        return self._requests

    @property
    def inspection(self) -> MemoryInspection:
        return self._inspection

    @property
    def samples(self) -> MemorySamples:
        return self._samples
