"""The inbox: admits each event once per consumer, in the transaction of the handler.

The inbox record is inserted first and never looked up before. If two consumers of the same name admit an event at once,
the second waits for the first and then learns that the event is processed. The inbox never commits: a rollback removes
the inbox record together with what the handler wrote.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeGuard, TypeVar, overload

from pillarbox import connections, dialects
from pillarbox.connections.accepted import Admitting, AsyncAdmitting
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, presentable
from pillarbox.core.rows import (
    INBOX_RETENTION,
    REDELIVERY_WINDOW,
    AsyncInboxTransaction,
    InboxRecord,
    InboxTransaction,
)
from pillarbox.core.statistics import ConsumerStatistics
from pillarbox.core.store import Retention, Store
from pillarbox.dialects import Dialect
from pillarbox.inbox.admission import Identified, check_consumer, record_of
from pillarbox.inbox.write_errors import ADD_STATISTICS, ADMIT, InboxWrite, explain
from pillarbox.pruning import prune_in_batches
from pillarbox.table_names import DEFAULT_TABLES, TableNames

ConnectionT = TypeVar("ConnectionT")
EventT = TypeVar("EventT", bound=str | Identified)
P = ParamSpec("P")
R = TypeVar("R")


class Inbox:
    """Makes handling idempotent. Holds no connection; one instance serves any number of consumers.

    Raises ConfigurationError for an invalid setting, and for a retention that is not longer than `redelivery`.
    """

    def __init__(
        self,
        *,
        tables: TableNames = DEFAULT_TABLES,
        retention: Duration = INBOX_RETENTION,
        redelivery: Duration = REDELIVERY_WINDOW,
    ) -> None:
        """
        tables: where the tables are: the same value as for the store and the outbox.
        retention: how long `prune` keeps inbox records, or "forever"; longer than `redelivery`.
        redelivery: the longest time after which an event may be redelivered; zero: no event is redelivered.
        """
        self._tables = tables
        self._retention = _checked(retention, redelivery)
        self._writers: dict[str, _InboxWriter] = {}

    def admit(self, connection: Admitting, consumer: str, event: str | Identified) -> bool:
        """Return True if the event is new to the consumer, False if the consumer has processed it already.

        A new event counts as processed once the connection's transaction commits. The event is an id, or anything that
        has an `event_id`. The connection is a SQLAlchemy Session or Connection, a psycopg or psycopg2
        connection, a sqlite3.Connection or a transaction of the memory store.

        Raises InvalidConnectionError for any other connection, NotInTransactionError if the inbox record would commit
        by itself, ConfigurationError for an invalid consumer name, InboxError for an invalid id, SchemaError if the
        table is missing. Other exceptions of the driver pass unchanged.
        """
        record = record_of(consumer, event)
        if _admits(connection):
            return connection.admit_record(record)
        return connections.run(
            connection, lambda dialect: self._admit_steps(dialect, record), instead="await inbox.aadmit(…)"
        )

    async def aadmit(self, connection: AsyncAdmitting, consumer: str, event: str | Identified) -> bool:
        """`admit` for a SQLAlchemy AsyncSession or AsyncConnection, a psycopg AsyncConnection or asyncpg."""
        record = record_of(consumer, event)
        if _admits(connection):
            return connection.admit_record(record)
        if _admits_awaited(connection):
            return await connection.aadmit_record(record)
        return await connections.arun(
            connection, lambda dialect: self._admit_steps(dialect, record), instead="inbox.admit(…)"
        )

    def once(self, consumer: str) -> IdempotentDecorator:
        """Decorate a function `(connection, event, …)`, sync or async: for a duplicate it returns None without a call.

        Raises ConfigurationError for an invalid consumer name.
        """
        check_consumer(consumer)
        return IdempotentDecorator(consumer, admit=self.admit, aadmit=self.aadmit)

    @contextmanager
    def admission(self, connection: Admitting, consumer: str, event: str | Identified) -> Iterator[bool]:
        """`admit` as a context manager: `with inbox.admission(session, "billing", event) as first:`."""
        yield self.admit(connection, consumer, event)

    @asynccontextmanager
    async def aadmission(
        self, connection: AsyncAdmitting, consumer: str, event: str | Identified
    ) -> AsyncIterator[bool]:
        """`aadmit` as a context manager."""
        yield await self.aadmit(connection, consumer, event)

    def add_statistics(self, connection: Admitting, statistics: ConsumerStatistics) -> None:
        """Add to the consumer statistics of this hour; a `Consumer` does so itself. Raises what `admit` raises."""
        if _admits(connection):
            connection.add_statistics(statistics)
        else:
            connections.run(
                connection,
                lambda dialect: self._add_statistics_steps(dialect, statistics),
                instead="await inbox.aadd_statistics(…)",
            )

    async def aadd_statistics(self, connection: AsyncAdmitting, statistics: ConsumerStatistics) -> None:
        """`add_statistics` for async connections."""
        if _admits(connection):
            connection.add_statistics(statistics)
        elif _admits_awaited(connection):
            await connection.aadd_statistics(statistics)
        else:
            await connections.arun(
                connection,
                lambda dialect: self._add_statistics_steps(dialect, statistics),
                instead="inbox.add_statistics(…)",
            )

    async def prune(self, store: Store) -> int:
        """Delete inbox records and consumer statistics past the retention period, in batches; returns how many rows.

        The store must be one on the same tables. A relay on them prunes the inbox itself, by its own setting.
        """
        if self._retention is None:
            return 0
        return sum([deleted async for deleted in prune_in_batches(store.pruning, Retention(inbox=self._retention))])

    def _admit_steps(self, dialect: str, record: InboxRecord) -> connections.Steps[bool]:
        writer = self._writer(dialect)
        return bool((yield from writer.execute(writer.admit, record, ADMIT)))

    def _add_statistics_steps(self, dialect: str, statistics: ConsumerStatistics) -> connections.Steps[None]:
        writer = self._writer(dialect)
        yield from writer.execute(writer.count, statistics, ADD_STATISTICS)

    def _writer(self, name: str) -> _InboxWriter:
        if (writer := self._writers.get(name)) is None:
            writer = self._writers[name] = _InboxWriter(dialects.find(name), self._tables)
        return writer


class _InboxWriter:
    """The statements of the inbox in one dialect."""

    def __init__(self, dialect: Dialect, tables: TableNames) -> None:
        self._dialect = dialect
        self._names = dialect.names(tables)
        statements = dialect.statements(self._names)
        self.admit = statements.get("admit")
        self.count = statements.get("count_results")

    def execute(
        self, sql: str, row: InboxRecord | ConsumerStatistics, write: InboxWrite
    ) -> connections.Steps[connections.Rows]:
        try:
            return (yield connections.BoundStatement(sql, self._dialect.inbox_values(row)))
        except Exception as error:
            if (explained := explain(error, write, self._dialect, self._names)) is None:
                raise
            raise explained from presentable(error)


class _Admit(Protocol):
    def __call__(self, connection: Any, consumer: str, event: str | Identified) -> bool: ...


class _AsyncAdmit(Protocol):
    def __call__(self, connection: Any, consumer: str, event: str | Identified) -> Awaitable[bool]: ...


class IdempotentDecorator:
    """The decorator of `Inbox.once`. The function's first two arguments are the connection and the event, or its id."""

    def __init__(self, consumer: str, *, admit: _Admit, aadmit: _AsyncAdmit) -> None:
        self._consumer = consumer
        self._admit = admit
        self._aadmit = aadmit

    @overload
    def __call__(
        self, handler: Callable[Concatenate[ConnectionT, EventT, P], Coroutine[Any, Any, R]]
    ) -> Callable[Concatenate[ConnectionT, EventT, P], Coroutine[Any, Any, R | None]]: ...
    @overload
    def __call__(
        self, handler: Callable[Concatenate[ConnectionT, EventT, P], R]
    ) -> Callable[Concatenate[ConnectionT, EventT, P], R | None]: ...
    def __call__(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        """Raises ConfigurationError for a generator: a call would do nothing, and the event be lost."""
        if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
            raise ConfigurationError(
                f"consumer {self._consumer}: {handler.__qualname__} is a generator, so calling it would do nothing; "
                "remove the yield"
            )
        return self._async_once(handler) if inspect.iscoroutinefunction(handler) else self._once(handler)

    def _once(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(handler)
        def once(connection: Any, event: str | Identified, /, *args: Any, **kwargs: Any) -> Any:
            if self._admit(connection, self._consumer, event):
                return handler(connection, event, *args, **kwargs)
            return None

        return once

    def _async_once(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(handler)
        async def once(connection: Any, event: str | Identified, /, *args: Any, **kwargs: Any) -> Any:
            if await self._aadmit(connection, self._consumer, event):
                return await handler(connection, event, *args, **kwargs)
            return None

        return once


def _admits(connection: object) -> TypeGuard[InboxTransaction]:
    return hasattr(type(connection), "admit_record")


def _admits_awaited(connection: object) -> TypeGuard[AsyncInboxTransaction]:
    return hasattr(type(connection), "aadmit_record")


def _checked(retention: Duration, redelivery: Duration) -> float | None:
    longest = seconds(redelivery, field="redelivery")
    if retention == "forever":
        return None
    kept = seconds(retention, field="retention")
    if kept <= longest:
        raise ConfigurationError(
            f"retention {retention} must be longer than redelivery {redelivery}: an event redelivered after its "
            "inbox record was deleted would be handled again; raise retention, or lower redelivery if no event is "
            "redelivered that late"
        )
    return kept
