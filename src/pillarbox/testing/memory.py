"""The harness of the memory store: the shortest example of a harness."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pillarbox.admin.admin import AdminStore
from pillarbox.core.clock import Clock
from pillarbox.core.event import Event
from pillarbox.core.lane import LANES
from pillarbox.core.row import ConsumerStatistics
from pillarbox.core.store import LedgerKind
from pillarbox.inbox import Inbox
from pillarbox.record import Outbox
from pillarbox.stores.memory import MemoryStore, MemoryTransaction
from pillarbox.testing.conformance.harness import StoreHarness


class MemoryHarness(StoreHarness):
    """A fresh memory store."""

    def __init__(self, *, lanes: int = LANES, clock: Clock | None = None) -> None:
        self._store = MemoryStore(lanes=lanes, clock=clock)
        self._outbox = Outbox()
        self._inbox = Inbox()

    @property
    def store(self) -> AdminStore:
        return self._store

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[MemoryTransaction]:
        with self._store.transaction() as transaction:
            yield transaction

    @asynccontextmanager
    async def savepoint(self, transaction: MemoryTransaction) -> AsyncIterator[None]:
        with transaction.savepoint():
            yield

    async def record(self, transaction: MemoryTransaction, *events: Event) -> None:
        self._outbox.record(transaction, *events)

    async def admit(self, transaction: MemoryTransaction, consumer: str, event_id: str) -> bool:
        return self._inbox.admit(transaction, consumer, event_id)

    async def tally(self, transaction: MemoryTransaction, tally: ConsumerStatistics) -> None:
        self._inbox.add_statistics(transaction, tally)

    async def second_store(self, *, history: bool = True, ledger: LedgerKind = False) -> AdminStore:
        return self._store.beside(history=history, ledger=ledger)
