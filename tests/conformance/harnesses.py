"""The harnesses of the stores: how the suite opens each store, and a transaction of a producer."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

import asyncmy
import asyncpg

from pillarbox.admin.admin import AdminStore
from pillarbox.core.event import Event
from pillarbox.core.statistics import ConsumerStatistics
from pillarbox.core.store import LedgerKind
from pillarbox.inbox import Inbox
from pillarbox.record import Outbox
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.stores.mariadb.tls import address_of
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.harness import StoreHarness

S = TypeVar("S", bound=AdminStore)


class _Harness(StoreHarness, Generic[S]):
    """Closes all stores that it has opened."""

    def __init__(self, store: S) -> None:
        self._stores: list[S] = [store]
        self._outbox = Outbox()
        self._inbox = Inbox()

    @property
    def store(self) -> S:
        return self._stores[0]

    def _keep(self, store: S) -> S:
        self._stores.append(store)
        return store

    async def aclose(self) -> None:
        for store in self._stores:
            await store.aclose()


class PostgresHarness(_Harness[PostgresStore]):
    """A database cloned from the template; producers use asyncpg."""

    def __init__(self, url: str, make_empty: Callable[[], str] | None = None) -> None:
        """make_empty: creates a database without tables and returns its URL, only for the tests that need one."""
        super().__init__(PostgresStore(url))
        self._url = url
        self._make_empty = make_empty

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        connection = await asyncpg.connect(self._url)
        try:
            async with connection.transaction():
                yield connection
        finally:
            await connection.close()

    def savepoint(self, transaction: Any) -> AbstractAsyncContextManager[Any]:
        savepoint: AbstractAsyncContextManager[Any] = transaction.transaction()
        return savepoint

    async def record(self, transaction: Any, *events: Event) -> None:
        await self._outbox.arecord(transaction, *events)

    async def admit(self, transaction: Any, consumer: str, event_id: str) -> bool:
        return await self._inbox.aadmit(transaction, consumer, event_id)

    async def add_statistics(self, transaction: Any, statistics: ConsumerStatistics) -> None:
        await self._inbox.aadd_statistics(transaction, statistics)

    async def second_store(self, *, history: bool = True, ledger: LedgerKind = False) -> AdminStore:
        return self._keep(PostgresStore(self._url, history=history, ledger=ledger))

    async def store_without_tables(self) -> AdminStore | None:
        return self._keep(PostgresStore(self._make_empty())) if self._make_empty else None


class LowWaterMarksHarness(PostgresHarness):
    """Every fetch counts as slow, so that the next one begins at low-water marks."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.store.messages.low_water_marks.slow = -1

    def _keep(self, store: PostgresStore) -> PostgresStore:
        store.messages.low_water_marks.slow = -1
        return super()._keep(store)


class MariaDBHarness(_Harness[MariaDBStore]):
    """A database of its own; producers use asyncmy, at the isolation level that MariaDB has by default."""

    def __init__(self, url: str, make_empty: Callable[[], str] | None = None) -> None:
        """make_empty: creates a database without tables and returns its URL, only for the tests that need one."""
        super().__init__(MariaDBStore(url))
        self._url = url
        self._make_empty = make_empty

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        address = address_of(self._url)
        connection = await asyncmy.connect(
            host=address.host, port=address.port, user=address.user, database=address.database
        )
        try:
            yield connection
            await connection.commit()
        finally:
            await connection.ensure_closed()

    @asynccontextmanager
    async def savepoint(self, transaction: Any) -> AsyncIterator[Any]:
        async with transaction.cursor() as cursor:
            await cursor.execute("SAVEPOINT here")
            try:
                yield transaction
            except BaseException:
                await cursor.execute("ROLLBACK TO here")
                raise
            finally:
                await cursor.execute("RELEASE SAVEPOINT here")

    async def record(self, transaction: Any, *events: Event) -> None:
        await self._outbox.arecord(transaction, *events)

    async def admit(self, transaction: Any, consumer: str, event_id: str) -> bool:
        return await self._inbox.aadmit(transaction, consumer, event_id)

    async def add_statistics(self, transaction: Any, statistics: ConsumerStatistics) -> None:
        await self._inbox.aadd_statistics(transaction, statistics)

    async def second_store(self, *, history: bool = True, ledger: LedgerKind = False) -> AdminStore:
        return self._keep(MariaDBStore(self._url, history=history, ledger=ledger))

    async def store_without_tables(self) -> AdminStore | None:
        return self._keep(MariaDBStore(self._make_empty())) if self._make_empty else None


class SqliteHarness(_Harness[SqliteStore]):
    """A file in the folder of the test; producers use sqlite3."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "outbox.db"
        super().__init__(SqliteStore(self._path))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        connection = sqlite3.connect(self._path, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                yield connection
        finally:
            connection.close()

    @asynccontextmanager
    async def savepoint(self, transaction: Any) -> AsyncIterator[Any]:
        transaction.execute("SAVEPOINT here")
        try:
            yield transaction
        except BaseException:
            transaction.execute("ROLLBACK TO here")
            raise
        finally:
            transaction.execute("RELEASE here")

    async def record(self, transaction: Any, *events: Event) -> None:
        self._outbox.record(transaction, *events)

    async def admit(self, transaction: Any, consumer: str, event_id: str) -> bool:
        return self._inbox.admit(transaction, consumer, event_id)

    async def add_statistics(self, transaction: Any, statistics: ConsumerStatistics) -> None:
        self._inbox.add_statistics(transaction, statistics)

    async def second_store(self, *, history: bool = True, ledger: LedgerKind = False) -> AdminStore:
        return self._keep(SqliteStore(self._path, history=history, ledger=ledger))

    async def store_without_tables(self) -> AdminStore | None:
        return self._keep(SqliteStore(self._folder / "bare.db"))
