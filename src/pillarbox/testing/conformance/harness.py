"""What the author of a store writes: how to open a fresh store, and how a producer writes to it.

The suite does everything else through the protocols of `pillarbox.core.store`, so that it tests what a relay uses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import Any

from pillarbox.admin.admin import AdminStore
from pillarbox.core.event import Event
from pillarbox.core.statistics import ConsumerStatistics
from pillarbox.core.store import LedgerKind


class StoreHarness(ABC):
    """A fresh store for one test, and its producer's side.

    The fixture that creates it closes every store that it returned.
    """

    @property
    @abstractmethod
    def store(self) -> AdminStore:
        """The store under test: with tables, empty, with history."""

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """A transaction of a producer: commits at the end of the block, rolls back on an exception."""

    @abstractmethod
    def savepoint(self, transaction: Any) -> AbstractAsyncContextManager[Any]:
        """A savepoint in that transaction: rolled back on an exception."""

    @abstractmethod
    async def record(self, transaction: Any, *events: Event) -> None:
        """Record in that transaction, through `pillarbox.record.Outbox`."""

    @abstractmethod
    async def admit(self, transaction: Any, consumer: str, event_id: str) -> bool:
        """Admit in that transaction, through `pillarbox.inbox.Inbox`."""

    @abstractmethod
    async def add_statistics(self, transaction: Any, statistics: ConsumerStatistics) -> None:
        """Add consumer statistics in that transaction, through `pillarbox.inbox.Inbox`."""

    @abstractmethod
    async def second_store(self, *, history: bool = True, ledger: LedgerKind = False) -> AdminStore:
        """Another store on the same data with its own connections, like a second process."""

    async def store_without_tables(self) -> AdminStore | None:
        """A store on its own database without tables; None if that is impossible."""
        return None

    async def commit(self, *events: Event) -> None:
        """Record events in one transaction."""
        async with self.transaction() as transaction:
            await self.record(transaction, *events)
