"""SQLAlchemy 2.0 and 2.1: sessions, connections, engines and session factories, blocking and awaited.

The statement goes to the driver in the driver's own style, past the compiler. Whether a transaction is open is
asked of the driver too: SQLAlchemy's `in_transaction()` is true even at isolation level AUTOCOMMIT.
An awaited session or connection runs the blocking code through its `run_sync`, so there is one way, not two.
"""

from __future__ import annotations

from typing import Any

from pillarbox.connections import registry
from pillarbox.connections.connection import BoundStatement, Operation, Rows, T, drive, guarded
from pillarbox.connections.driver import BehindSqlAlchemy, Driver
from pillarbox.connections.kinds import kind_of
from pillarbox.connections.placeholders import render
from pillarbox.core.errors import InvalidConnectionError, NotInTransactionError

_REMEDY = (
    'use an engine without isolation_level="AUTOCOMMIT" and wrap both in `with session.begin():` '
    "or `with engine.begin() as connection:`"
)


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
        drivers = registry.known_classes("behind_sqlalchemy")
        driver: BehindSqlAlchemy | None = kind_of(own, drivers)
        if driver is None:
            supported = ", ".join(sorted({known.name for known in drivers.values()}))
            raise InvalidConnectionError(
                f"SQLAlchemy's driver {self._connection.dialect.name}+{self._connection.dialect.driver} is not "
                f"supported; use one of {supported}"
            )

        def execute(statement: BoundStatement) -> Rows:
            sql = render(statement.sql, driver.style)
            result = self._connection.exec_driver_sql(sql, statement.parameters)
            return list(result.fetchall()) if result.returns_rows else []

        return drive(guarded(driver.guard(own, adapter, _REMEDY), operation, driver.dialect), execute)


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


def _begin(factory: Any) -> Any:
    return factory.begin()


DRIVER = Driver(
    accepts="a SQLAlchemy Session, Connection, AsyncSession or AsyncConnection",
    connections={
        ("sqlalchemy", "Session"): SqlAlchemySession,
        ("sqlalchemy", "scoped_session"): SqlAlchemySession,
        ("sqlalchemy", "Connection"): SqlAlchemyConnection,
    },
    async_connections={
        ("sqlalchemy", "AsyncSession"): SqlAlchemyAsyncSession,
        ("sqlalchemy", "async_scoped_session"): SqlAlchemyAsyncSession,
        ("sqlalchemy", "AsyncConnection"): SqlAlchemyAsyncConnection,
    },
    pools={("sqlalchemy", "Engine"): _begin, ("sqlalchemy", "sessionmaker"): _begin},
    async_pools={("sqlalchemy", "AsyncEngine"): _begin, ("sqlalchemy", "async_sessionmaker"): _begin},
    remedies={
        ("sqlalchemy", "Engine"): "pass the connection of `with engine.begin() as connection:`",
        ("sqlalchemy", "AsyncEngine"): "pass the connection of `async with engine.begin() as connection:`",
        ("sqlalchemy", "sessionmaker"): "pass the session of `with factory.begin() as session:`",
        ("sqlalchemy", "async_sessionmaker"): "pass the session of `async with factory.begin() as session:`",
    },
)
