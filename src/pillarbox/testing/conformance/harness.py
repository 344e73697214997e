"""The one thing a store's author writes: how to get at a fresh store, and how a producer writes into it.

Everything else the suite needs it does through the protocols of `pillarbox.core.store`, so that what passes here
is what a relay relies on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import Any

from pillarbox.admin.admin import AdminStore
from pillarbox.core.event import Event
from pillarbox.core.row import ConsumerStatistics
from pillarbox.core.store import LedgerKind


class StoreHarness(ABC):
    """A fresh store for one test, and the producer's side of it.

    The fixture that makes one closes every store it handed out.
    """

    @property
    @abstractmethod
    def store(self) -> AdminStore:
        """The store under test: tables in place, empty, history on."""

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """A producer's transaction: commits when the block ends, rolls back when it raises."""

    @abstractmethod
    def savepoint(self, transaction: Any) -> AbstractAsyncContextManager[Any]:
        """A savepoint in that transaction: undone when the block raises."""

    @abstractmethod
    async def record(self, transaction: Any, *events: Event) -> None:
        """Record on that transaction, through `pillarbox.record.Outbox`."""

    @abstractmethod
    async def admit(self, transaction: Any, consumer: str, event_id: str) -> bool:
        """Admit on that transaction, through `pillarbox.inbox.Inbox`."""

    @abstractmethod
    async def tally(self, transaction: Any, tally: ConsumerStatistics) -> None:
        """Add a tally on that transaction, through `pillarbox.inbox.Inbox`."""

    @abstractmethod
    async def second_store(self, *, history: bool = True, ledger: LedgerKind = False) -> AdminStore:
        """Another store object on the same data, with connections of its own: a second process, as it were."""

    async def bare_store(self) -> AdminStore | None:
        """A store on a database of its own without any tables; None where there is no such thing."""
        return None

    async def commit(self, *events: Event) -> None:
        """Record events in a transaction of their own."""
        async with self.transaction() as transaction:
            await self.record(transaction, *events)
