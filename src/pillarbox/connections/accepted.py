"""The types of what `record`, `arecord` and the inbox accept, so that an editor shows a wrong object as an error.

They describe the methods that tell the drivers' classes apart. No driver is imported: a type checker knows these types
also where a driver, or its stubs, is not installed.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol, TypeAlias

from pillarbox.core.rows import AsyncEventTransaction, AsyncInboxTransaction, EventTransaction, InboxTransaction


class DriverConnection(Protocol):
    """A connection of a DB-API driver: psycopg, psycopg2, PyMySQL, mysqlclient, sqlite3."""

    def cursor(self, *args: Any, **kwargs: Any) -> Any: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...


class OrmSession(Protocol):
    """SQLAlchemy's Session or scoped_session."""

    def connection(self, *args: Any, **kwargs: Any) -> Any: ...
    def begin_nested(self) -> AbstractContextManager[Any]: ...
    def commit(self) -> None: ...


class CoreConnection(Protocol):
    """SQLAlchemy's Connection."""

    def exec_driver_sql(self, *args: Any, **kwargs: Any) -> Any: ...
    def begin_nested(self) -> AbstractContextManager[Any]: ...
    def commit(self) -> None: ...


class TransactionFactory(Protocol):
    """SQLAlchemy's Engine or sessionmaker: `record` opens a transaction of its own."""

    def begin(self) -> AbstractContextManager[Any]: ...


class ConnectionPool(Protocol):
    """A pool of psycopg2: `record` opens a transaction of its own."""

    def getconn(self, key: Any = None) -> Any: ...
    def putconn(self, conn: Any, key: Any = None, close: bool = False) -> Any: ...


class AwaitedDriverConnection(Protocol):
    """A DB-API connection whose methods are awaited: psycopg's AsyncConnection, asyncmy."""

    def cursor(self, *args: Any, **kwargs: Any) -> Any: ...
    def commit(self) -> Awaitable[None]: ...
    def rollback(self) -> Awaitable[None]: ...


class AwaitedOrmConnection(Protocol):
    """SQLAlchemy's AsyncSession, async_scoped_session or AsyncConnection."""

    def run_sync(self, *args: Any, **kwargs: Any) -> Awaitable[Any]: ...
    def begin_nested(self) -> Any: ...


class AwaitedFetcher(Protocol):
    """A connection of asyncpg, also one of a pool."""

    def fetch(self, *args: Any, **kwargs: Any) -> Awaitable[Any]: ...
    def is_in_transaction(self) -> bool: ...


class AwaitedTransactionFactory(Protocol):
    """SQLAlchemy's AsyncEngine or async_sessionmaker: `arecord` opens a transaction of its own."""

    def begin(self) -> AbstractAsyncContextManager[Any]: ...


class AwaitedPool(Protocol):
    """The pool of asyncpg or asyncmy: `arecord` opens a transaction of its own."""

    def acquire(self, *args: Any, **kwargs: Any) -> Any: ...
    def release(self, *args: Any, **kwargs: Any) -> Awaitable[Any]: ...


SyncTransaction: TypeAlias = DriverConnection | OrmSession | CoreConnection
"""A connection in a transaction of the caller, on a driver that blocks."""
AsyncTransaction: TypeAlias = AwaitedDriverConnection | AwaitedOrmConnection | AwaitedFetcher
"""A connection in a transaction of the caller, on a driver that is awaited."""

Recordable: TypeAlias = SyncTransaction | TransactionFactory | ConnectionPool | EventTransaction
"""What `Outbox.record` accepts."""
AsyncRecordable: TypeAlias = (
    AsyncTransaction | AwaitedTransactionFactory | AwaitedPool | EventTransaction | AsyncEventTransaction
)
"""What `Outbox.arecord` accepts."""
Admitting: TypeAlias = SyncTransaction | InboxTransaction
"""What `Inbox.admit` accepts."""
AsyncAdmitting: TypeAlias = AsyncTransaction | InboxTransaction | AsyncInboxTransaction
"""What `Inbox.aadmit` accepts."""
