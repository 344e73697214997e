"""SQLAlchemy 2.0 and 2.1: sessions and connections, blocking and awaited.

The statement goes to the driver in the driver's own style, past the compiler. Whether a transaction is open is
asked of the driver too: SQLAlchemy's `in_transaction()` is true even at isolation level AUTOCOMMIT.
An awaited session or connection runs the blocking code through its `run_sync`, so there is one way, not two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pillarbox.connections import asyncpg, psycopg, sqlite
from pillarbox.connections.connection import Dialect, Operation, Rows, Statement, Steps, T, drive, guarded
from pillarbox.connections.kinds import kind_of
from pillarbox.connections.placeholders import Style, render
from pillarbox.core.errors import InvalidConnectionError, NotInTransactionError

_REMEDY = (
    'use an engine without isolation_level="AUTOCOMMIT" and wrap both in `with session.begin():` '
    "or `with engine.begin() as connection:`"
)


class _Driver(NamedTuple):
    dialect: Dialect
    style: Style
    guard: Callable[[Any, Any], Steps[None]]
    """Given the driver's connection and SQLAlchemy's adapter around it."""


def _libpq(own: Any, _adapter: Any) -> Steps[None]:
    return psycopg.guard(own, remedy=_REMEDY)


def _asyncpg(own: Any, adapter: Any) -> Steps[None]:
    # The adapter begins with the first statement, unless it is told to commit each.
    return asyncpg.guard(own, begins=not adapter.autocommit, remedy=_REMEDY)


def _sqlite(own: Any, _adapter: Any) -> Steps[None]:
    return sqlite.guard(own, remedy=_REMEDY)


_DRIVERS = {
    ("psycopg", "Connection"): _Driver("postgresql", Style.PERCENT, _libpq),
    ("psycopg", "AsyncConnection"): _Driver("postgresql", Style.PERCENT, _libpq),
    ("psycopg2", "connection"): _Driver("postgresql", Style.PERCENT, _libpq),
    ("asyncpg", "Connection"): _Driver("postgresql", Style.DOLLAR, _asyncpg),
    ("sqlite3", "Connection"): _Driver("sqlite", Style.QUESTION, _sqlite),
    ("aiosqlite", "Connection"): _Driver("sqlite", Style.QUESTION, _sqlite),
}


class SqlAlchemyConnection:
    """`sqlalchemy.Connection`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, operation: Operation[T]) -> T:
        if self._connection.closed:
            raise InvalidConnectionError("the SQLAlchemy connection is closed; pass an open one")
        # What the first statement would do anyway; an application may have hung its BEGIN on this moment.
        begun = None if self._connection.in_transaction() else self._connection.begin()
        try:
            return self._run(operation)
        except NotInTransactionError:
            if begun is not None:
                begun.rollback()
            raise

    def _run(self, operation: Operation[T]) -> T:
        adapter = self._connection.connection.dbapi_connection
        own = self._connection.connection.driver_connection
        driver = kind_of(own, _DRIVERS)
        if driver is None:
            raise InvalidConnectionError(
                f"SQLAlchemy's driver {self._connection.dialect.name}+{self._connection.dialect.driver} is not known "
                "here; use postgresql with psycopg, psycopg2 or asyncpg, or sqlite with pysqlite or aiosqlite"
            )

        def execute(statement: Statement) -> Rows:
            sql = render(statement.sql, driver.style)
            result = self._connection.exec_driver_sql(sql, statement.parameters)
            return list(result.fetchall()) if result.returns_rows else []

        return drive(guarded(driver.guard(own, adapter), operation, driver.dialect), execute)


class SqlAlchemySession:
    """`sqlalchemy.orm.Session`, or the current one of a `scoped_session`."""

    def __init__(self, session: Any) -> None:
        self._session: Any = session() if callable(session) else session

    def run(self, operation: Operation[T]) -> T:
        return SqlAlchemyConnection(self._session.connection()).run(operation)


class SqlAlchemyAsyncConnection:
    """`sqlalchemy.ext.asyncio.AsyncConnection`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def arun(self, operation: Operation[T]) -> T:
        if self._connection.sync_connection is None:
            raise InvalidConnectionError(
                "the AsyncConnection is not open; use it inside `async with engine.begin() as connection:`"
            )

        def run(connection: Any) -> T:
            return SqlAlchemyConnection(connection).run(operation)

        result: T = await self._connection.run_sync(run)
        return result


class SqlAlchemyAsyncSession:
    """`sqlalchemy.ext.asyncio.AsyncSession`, or the current one of an `async_scoped_session`."""

    def __init__(self, session: Any) -> None:
        self._session: Any = session() if callable(session) else session

    async def arun(self, operation: Operation[T]) -> T:
        def run(session: Any) -> T:
            return SqlAlchemySession(session).run(operation)

        result: T = await self._session.run_sync(run)
        return result
