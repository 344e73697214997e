"""The harness of the memory store: the shortest example of a harness."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pillarbox.admin.admin import AdminStore
from pillarbox.core.clock import Clock
from pillarbox.core.event import Event
from pillarbox.core.lane import LANES
from pillarbox.core.statistics import ConsumerStatistics
from pillarbox.core.store import LedgerKind
from pillarbox.inbox import Inbox
from pillarbox.record import Outbox
from pillarbox.stores.memory import MemoryStore, MemoryTransaction
from pillarbox.testing.conformance.harness import StoreHarness


class MemoryHarness(StoreHarness):
    """A fresh memory store."""

    def __init__(self, *, lanes: int = LANES, clock: Clock | None = None, store: MemoryStore | None = None) -> None:
        """store: an empty one to use instead, for a subclass of `MemoryStore`."""
        self._store = store or MemoryStore(lanes=lanes, clock=clock)
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

    async def add_statistics(self, transaction: MemoryTransaction, statistics: ConsumerStatistics) -> None:
        self._inbox.add_statistics(transaction, statistics)

    async def second_store(self, *, history: bool = True, ledger: LedgerKind = False) -> AdminStore:
        return self._store.clone(history=history, ledger=ledger)
