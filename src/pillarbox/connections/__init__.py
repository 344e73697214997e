"""Run statements inside the caller's transaction: one module per driver.

This package imports no driver. It recognises a driver's connection by the name of its class and calls its methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pillarbox.connections import pools
from pillarbox.connections.asyncpg import AsyncpgConnection
from pillarbox.connections.connection import (
    AsyncConnection,
    Dialect,
    Operation,
    Rows,
    Statement,
    Steps,
    SyncConnection,
    T,
)
from pillarbox.connections.kinds import kind_of
from pillarbox.connections.psycopg import PsycopgAsyncConnection, PsycopgConnection
from pillarbox.connections.psycopg2 import Psycopg2Connection
from pillarbox.connections.sqlalchemy import (
    SqlAlchemyAsyncConnection,
    SqlAlchemyAsyncSession,
    SqlAlchemyConnection,
    SqlAlchemySession,
)
from pillarbox.connections.sqlite import SqliteConnection
from pillarbox.connections.unsupported import refusal
from pillarbox.core.errors import InvalidConnectionError

__all__ = ["Dialect", "Operation", "Rows", "Statement", "Steps", "arun", "run"]

_SYNC: dict[tuple[str, str], Callable[[Any], SyncConnection]] = {
    ("sqlalchemy", "Session"): SqlAlchemySession,
    ("sqlalchemy", "scoped_session"): SqlAlchemySession,
    ("sqlalchemy", "Connection"): SqlAlchemyConnection,
    ("psycopg", "Connection"): PsycopgConnection,
    ("psycopg2", "connection"): Psycopg2Connection,
    ("sqlite3", "Connection"): SqliteConnection,
}
_ASYNC: dict[tuple[str, str], Callable[[Any], AsyncConnection]] = {
    ("sqlalchemy", "AsyncSession"): SqlAlchemyAsyncSession,
    ("sqlalchemy", "async_scoped_session"): SqlAlchemyAsyncSession,
    ("sqlalchemy", "AsyncConnection"): SqlAlchemyAsyncConnection,
    ("psycopg", "AsyncConnection"): PsycopgAsyncConnection,
    ("asyncpg", "Connection"): AsyncpgConnection,
    ("asyncpg", "PoolConnectionProxy"): AsyncpgConnection,
}


def run(connection: object, operation: Operation[T], *, instead: str, own_transaction: bool = False) -> T:
    """Run the operation in the connection's transaction; `instead` names the call for connections that are awaited.

    own_transaction: with an engine, a session factory or a pool, run the operation in a transaction of its own and
    commit it; without this flag those are refused.
    Raises InvalidConnectionError for anything that is not an open, blocking connection, and NotInTransactionError if
    the operation's first write would commit by itself. What the driver raises goes to the operation.
    """
    if found := kind_of(connection, _SYNC):
        return found(connection).run(operation)
    if own_transaction and (begin := kind_of(connection, pools.SYNC)):
        with begin(connection) as opened:
            return run(opened, operation, instead=instead)
    if kind_of(connection, _ASYNC) or (own_transaction and kind_of(connection, pools.ASYNC)):
        raise InvalidConnectionError(f"{_name(connection)} is awaited; call {instead}")
    raise refusal(connection)


async def arun(connection: object, operation: Operation[T], *, instead: str, own_transaction: bool = False) -> T:
    """`run`, awaited; `instead` names the call for connections that block."""
    if found := kind_of(connection, _ASYNC):
        return await found(connection).arun(operation)
    if own_transaction and (begin := kind_of(connection, pools.ASYNC)):
        async with begin(connection) as opened:
            return await arun(opened, operation, instead=instead)
    if kind_of(connection, _SYNC) or (own_transaction and kind_of(connection, pools.SYNC)):
        raise InvalidConnectionError(f"{_name(connection)} is not awaited; call {instead}")
    raise refusal(connection)


def _name(connection: object) -> str:
    return f"{type(connection).__module__}.{type(connection).__qualname__}"
