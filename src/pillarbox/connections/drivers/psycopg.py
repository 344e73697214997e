"""psycopg 3: connections, blocking and awaited. libpq tells whether a transaction is open."""

from __future__ import annotations

from functools import cache
from typing import Any

from pillarbox.connections.connection import BoundStatement, Operation, Rows, Steps, T, adrive, drive, guarded
from pillarbox.connections.driver import BehindSqlAlchemy, Driver
from pillarbox.connections.placeholders import Style, render
from pillarbox.core.errors import InvalidConnectionError, NotInTransactionError
from pillarbox.statements import Names, StatementSet, load_statements

# libpq's PGTransactionStatusType.
_IDLE, _ACTIVE = 0, 1


def probe() -> BoundStatement:
    """A statement that changes nothing; after its reply libpq knows whether a transaction is open."""
    return BoundStatement(
        StatementSet(Names(), load_statements("pillarbox.connections.drivers", "psycopg")).get("catch_up")
    )


def guard(connection: Any, *, remedy: str) -> Steps[None]:
    """Raise NotInTransactionError if an INSERT on this connection would commit by itself."""
    if connection.closed:
        raise InvalidConnectionError("the psycopg connection is closed; pass an open one")
    if not connection.autocommit:
        return
    if connection.info.transaction_status == _ACTIVE:
        # In a pipeline the status is known only after the replies were read.
        yield probe()
    if connection.info.transaction_status == _IDLE:
        raise NotInTransactionError(
            "the connection is in autocommit mode and no transaction is open, so the INSERT would commit by itself, "
            f"apart from your own rows; {remedy}"
        )


class PsycopgConnection:
    """`psycopg.Connection`."""

    remedy = "wrap both in `with connection.transaction():`"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, operation: Operation[T]) -> T:
        return drive(_steps(self._connection, operation, self.remedy), self._execute)

    def _execute(self, statement: BoundStatement) -> Rows:
        cursor = self._connection.cursor(row_factory=_as_tuples)
        cursor.execute(render(statement.sql, _style(cursor.__class__)), statement.parameters)
        if _in_pipeline(self._connection):
            with self._connection.pipeline() as pipeline:
                pipeline.sync()
        rows: Rows = cursor.fetchall() if cursor.description else ()
        return rows


class PsycopgAsyncConnection:
    """`psycopg.AsyncConnection`."""

    remedy = "wrap both in `async with connection.transaction():`"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def arun(self, operation: Operation[T]) -> T:
        return await adrive(_steps(self._connection, operation, self.remedy), self._execute)

    async def _execute(self, statement: BoundStatement) -> Rows:
        cursor = self._connection.cursor(row_factory=_as_tuples)
        await cursor.execute(render(statement.sql, _style(cursor.__class__)), statement.parameters)
        if _in_pipeline(self._connection):
            async with self._connection.pipeline() as pipeline:
                await pipeline.sync()
        rows: Rows = await cursor.fetchall() if cursor.description else ()
        return rows


def _steps(connection: Any, operation: Operation[T], remedy: str) -> Steps[T]:
    return guarded(guard(connection, remedy=remedy), operation, "postgres")


def _in_pipeline(connection: Any) -> bool:
    """There replies are read later, and a refusal would come to light far from its cause."""
    return bool(connection.pgconn.pipeline_status)


def _as_tuples(_cursor: object) -> type[tuple[Any, ...]]:
    """A row factory that does not depend on the one the caller chose for the connection."""
    return tuple


@cache
def _style(cursor: type) -> Style:
    """The caller may have made RawCursor, which takes $1, the cursor of the connection."""
    raw = any(kind.__name__ == "RawCursorMixin" for kind in cursor.__mro__)
    return Style.DOLLAR if raw else Style.PERCENT


def guard_behind_sqlalchemy(connection: Any, _adapter: Any, remedy: str) -> Steps[None]:
    """`guard` for SQLAlchemy; also for psycopg2, because SQLAlchemy opens no transaction with `with connection:`."""
    return guard(connection, remedy=remedy)


_BEHIND_SQLALCHEMY = BehindSqlAlchemy("postgres", Style.PERCENT, guard_behind_sqlalchemy, "postgresql+psycopg")

DRIVER = Driver(
    accepts="a psycopg Connection or AsyncConnection",
    connections={("psycopg", "Connection"): PsycopgConnection},
    async_connections={("psycopg", "AsyncConnection"): PsycopgAsyncConnection},
    behind_sqlalchemy={
        ("psycopg", "Connection"): _BEHIND_SQLALCHEMY,
        ("psycopg", "AsyncConnection"): _BEHIND_SQLALCHEMY,
    },
    remedies={
        ("psycopg_pool", "ConnectionPool"): "pass the connection of `with pool.connection() as connection:`",
        ("psycopg_pool", "AsyncConnectionPool"): "pass the connection of `async with pool.connection() as connection:`",
        ("psycopg", "BaseCursor"): "pass the cursor's `.connection`",
    },
)
