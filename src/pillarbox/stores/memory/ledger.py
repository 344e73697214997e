"""What was sent before."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.core.outcome import Resolved
from pillarbox.stores.memory.tables import Tables, verb


class MemoryLedger:
    """See `pillarbox.core.store.Ledger`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @verb
    def begin(self, messages: Sequence[Resolved]) -> list[bool]:
        sent = []
        for message, destination in messages:
            identity = (message.event_id, destination)
            sent.append(not self._tables.note(identity, "PROCESSING"))
        return sent
