"""The error for an object that `record` and the inbox cannot use, with what to pass instead."""

from __future__ import annotations

from pillarbox.connections.kinds import kind_of
from pillarbox.core.errors import InvalidConnectionError

ACCEPTED = (
    "a SQLAlchemy Session, Connection, AsyncSession or AsyncConnection, a psycopg Connection or AsyncConnection, "
    "a psycopg2 connection, an asyncpg connection, a sqlite3.Connection"
)

_NEXT_STEP = {
    ("sqlalchemy", "Engine"): "pass the connection of `with engine.begin() as connection:`",
    ("sqlalchemy", "AsyncEngine"): "pass the connection of `async with engine.begin() as connection:`",
    ("sqlalchemy", "sessionmaker"): "pass the session of `with factory.begin() as session:`",
    ("sqlalchemy", "async_sessionmaker"): "pass the session of `async with factory.begin() as session:`",
    ("asyncpg", "Pool"): "pass the connection of `async with pool.acquire() as connection, connection.transaction():`",
    ("psycopg_pool", "ConnectionPool"): "pass the connection of `with pool.connection() as connection:`",
    ("psycopg_pool", "AsyncConnectionPool"): "pass the connection of `async with pool.connection() as connection:`",
    ("psycopg", "BaseCursor"): "pass the cursor's `.connection`",
    ("sqlite3", "Cursor"): "pass the cursor's `.connection`",
    ("psycopg2", "cursor"): "pass the cursor's `.connection`",
    (
        "psycopg2",
        "AbstractConnectionPool",
    ): "pass `pool.getconn()`, in a block `with connection:`",
    (
        "aiosqlite",
        "Connection",
    ): "aiosqlite is accepted through SQLAlchemy: create_async_engine('sqlite+aiosqlite://…')",
}


def refusal(connection: object) -> InvalidConnectionError:
    """The error for an object that is no connection in a transaction."""
    what = f"{type(connection).__module__}.{type(connection).__qualname__}"
    step = kind_of(connection, _NEXT_STEP) or f"pass {ACCEPTED}"
    return InvalidConnectionError(f"{what} is not a transaction to work in; {step}")
