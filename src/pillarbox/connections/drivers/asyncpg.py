"""asyncpg: connections, also those acquired from a pool, and pools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pillarbox.connections.connection import BoundStatement, Operation, Rows, Steps, T, adrive, guarded
from pillarbox.connections.driver import BehindSqlAlchemy, Driver
from pillarbox.connections.placeholders import Style
from pillarbox.core.errors import InvalidConnectionError, NotInTransactionError


def guard(connection: Any, *, begins: bool, remedy: str) -> Steps[None]:
    """Raise NotInTransactionError if an INSERT on this connection would commit by itself.

    begins: the caller of this guard opens a transaction for the INSERT.
    """
    yield from ()  # this driver answers without a statement
    if connection.is_closed():
        raise InvalidConnectionError("the asyncpg connection is closed; pass an open one")
    if not begins and not connection.is_in_transaction():
        raise NotInTransactionError(
            "no transaction is open on the asyncpg connection, so the INSERT would commit by itself, "
            f"apart from your own rows; {remedy}"
        )


class AsyncpgConnection:
    """`asyncpg.Connection`, or the proxy that a pool hands out."""

    remedy = "wrap both in `async with connection.transaction():`"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def arun(self, operation: Operation[T]) -> T:
        own = self._own()
        steps = guarded(guard(own, begins=False, remedy=self.remedy), operation, "postgres")
        return await adrive(steps, self._execute)

    async def _execute(self, statement: BoundStatement) -> Rows:
        rows: Rows = await self._connection.fetch(statement.sql, *statement.parameters)
        return rows

    def _own(self) -> Any:
        """The connection behind a pool's proxy, which says more precisely what is wrong."""
        own = getattr(self._connection, "_con", self._connection)
        if own is None:
            raise InvalidConnectionError(
                "the asyncpg connection went back to its pool; use it before its `async with` block ends"
            )
        return own


@asynccontextmanager
async def _acquire(pool: Any) -> AsyncIterator[Any]:
    async with pool.acquire() as connection, connection.transaction():
        yield connection


def _behind_sqlalchemy(connection: Any, adapter: Any, remedy: str) -> Steps[None]:
    # The adapter begins with the first statement, unless it is told to commit each.
    return guard(connection, begins=not adapter.autocommit, remedy=remedy)


DRIVER = Driver(
    accepts="an asyncpg connection",
    async_connections={
        ("asyncpg", "Connection"): AsyncpgConnection,
        ("asyncpg", "PoolConnectionProxy"): AsyncpgConnection,
    },
    async_pools={("asyncpg", "Pool"): _acquire},
    behind_sqlalchemy={
        ("asyncpg", "Connection"): BehindSqlAlchemy("postgres", Style.DOLLAR, _behind_sqlalchemy, "postgresql+asyncpg"),
    },
    remedies={
        (
            "asyncpg",
            "Pool",
        ): "pass the connection of `async with pool.acquire() as connection, connection.transaction():`"
    },
)
