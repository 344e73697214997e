"""What was sent before."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.core.outcome import Resolved
from pillarbox.core.store import Ledger, LedgerKind, PriorSend, is_first, send_number
from pillarbox.stores.memory.tables import Tables, atomic


def ledger_of(kind: LedgerKind, *, history: bool, tables: Tables) -> Ledger | None:
    """What answers whether an event was sent before; nothing where it would be the history and none is kept."""
    if kind == "history":
        return MemoryHistoryLedger(tables) if history else None
    return MemoryLedger(tables) if kind else None


class MemoryLedger:
    """See `pillarbox.core.store.Ledger`."""

    records_sends = True

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @atomic
    def begin(self, messages: Sequence[Resolved]) -> list[PriorSend]:
        before = [self._before(resolved) for resolved in messages]
        for message, destination in messages:
            self._tables.write_ledger((message.event_id, destination), "PROCESSING", send_number=send_number(message))
        return before

    def _before(self, resolved: Resolved) -> PriorSend:
        known = self._tables.processed.get((resolved.message.event_id, resolved.destination))
        if known is not None and known.status == "SUCCESS":
            return PriorSend.SENT
        if known is not None and known.status == "PROCESSING" and known.send_number == send_number(resolved.message):
            return PriorSend.UNKNOWN
        return PriorSend.NOT_SENT


class MemoryHistoryLedger:
    """See `pillarbox.core.store.Ledger`: the history answers, and nothing is written."""

    records_sends = False

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @atomic
    def begin(self, messages: Sequence[Resolved]) -> list[PriorSend]:
        asked = {message.event_id for message, _ in messages if is_first(message)}
        history = (published.stored.message for published in self._tables.history.values()) if asked else ()
        sent = {message.identity for message in history if message.event_id in asked}
        return [
            PriorSend.SENT if is_first(message) and (message.event_id, destination) in sent else PriorSend.NOT_SENT
            for message, destination in messages
        ]
