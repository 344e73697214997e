"""The operators' half of the store."""

from __future__ import annotations

from pillarbox.stores.memory.archive import MemoryArchive
from pillarbox.stores.memory.audit import MemoryAudit
from pillarbox.stores.memory.dead_letters import MemoryDeadLetters
from pillarbox.stores.memory.events import MemoryEvents
from pillarbox.stores.memory.inspection import MemoryInspection
from pillarbox.stores.memory.keys import MemoryKeys
from pillarbox.stores.memory.replays import MemoryReplays
from pillarbox.stores.memory.requests import MemoryRequests
from pillarbox.stores.memory.statistics import MemorySamples
from pillarbox.stores.memory.tables import Tables


class MemoryAdmin:
    """See `pillarbox.admin.admin.Admin`."""

    def __init__(self, tables: Tables) -> None:
        self.events = MemoryEvents(tables)
        self.dead_letters = MemoryDeadLetters(tables)
        self.requests = MemoryRequests(tables)
        self.audit = MemoryAudit(tables)
        self.replays = MemoryReplays(tables)
        self.archive = MemoryArchive(tables)
        self.keys = MemoryKeys(tables)
        self.inspection = MemoryInspection(tables)
        self.samples = MemorySamples(tables)
