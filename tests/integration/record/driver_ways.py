"""Connections of the drivers themselves: psycopg, psycopg2, asyncpg and sqlite3."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from typing import Any, Literal

import asyncpg
import psycopg
import psycopg2
from psycopg2.extensions import connection as psycopg2_connection
from psycopg2.extras import RealDictCursor
from psycopg2.pool import SimpleConnectionPool

from tests.integration.record.way import Open, Way, blocking


@asynccontextmanager
async def _psycopg_savepoint(connection: psycopg.Connection) -> AsyncIterator[None]:
    with connection.transaction():
        yield


def _psycopg_autocommit(url: str) -> psycopg.Connection:
    return psycopg.connect(url, autocommit=True)


@asynccontextmanager
async def _psycopg_async(url: str) -> AsyncIterator[psycopg.AsyncConnection]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield connection


@asynccontextmanager
async def _psycopg_async_autocommit(url: str) -> AsyncIterator[psycopg.AsyncConnection]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        yield connection


@contextmanager
def _psycopg_explicit(url: str) -> Iterator[psycopg.Connection]:
    """Autocommit, with a transaction opened by hand."""
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        yield connection


def _psycopg2(*, autocommit: bool = False, begun: bool = True, **options: Any) -> Open:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[psycopg2_connection]:
        with closing(psycopg2.connect(url, **options)) as connection:
            connection.autocommit = autocommit
            if not begun:
                yield connection
                return
            with connection:
                yield connection

    return opened


@asynccontextmanager
async def _psycopg2_pool(url: str) -> AsyncIterator[psycopg2_connection]:
    with closing_all(SimpleConnectionPool(1, 1, url)) as pool:
        connection = pool.getconn()
        with connection:
            yield connection
        pool.putconn(connection)


@contextmanager
def closing_all(pool: SimpleConnectionPool) -> Iterator[SimpleConnectionPool]:
    try:
        yield pool
    finally:
        pool.closeall()


@asynccontextmanager
async def _psycopg2_begun(url: str) -> AsyncIterator[psycopg2_connection]:
    """Autocommit, with a transaction begun by hand."""
    async with _psycopg2(autocommit=True, begun=False)(url) as connection:
        connection.cursor().execute("BEGIN")
        try:
            yield connection
        except BaseException:
            connection.cursor().execute("ROLLBACK")
            raise
        connection.cursor().execute("COMMIT")


@asynccontextmanager
async def _psycopg2_savepoint(connection: psycopg2_connection) -> AsyncIterator[None]:
    cursor = connection.cursor()
    cursor.execute("SAVEPOINT inner_one")
    try:
        yield
    except BaseException:
        cursor.execute("ROLLBACK TO inner_one")
        raise
    finally:
        cursor.execute("RELEASE inner_one")


@asynccontextmanager
async def _asyncpg_idle(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def _asyncpg(url: str) -> AsyncIterator[Any]:
    async with _asyncpg_idle(url) as connection, connection.transaction():
        yield connection


@asynccontextmanager
async def _asyncpg_pool_idle(url: str) -> AsyncIterator[Any]:
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        yield connection


@asynccontextmanager
async def _asyncpg_pool(url: str) -> AsyncIterator[Any]:
    async with _asyncpg_pool_idle(url) as connection, connection.transaction():
        yield connection


class _OwnConnection(sqlite3.Connection):
    """What frameworks do: a subclass, with rows as dicts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.row_factory = lambda cursor, row: dict(zip(cursor.description, row, strict=True))


def _sqlite(
    kind: type[sqlite3.Connection] = sqlite3.Connection, level: Literal["DEFERRED", "IMMEDIATE"] | None = "DEFERRED"
) -> Open:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[sqlite3.Connection]:
        with closing(sqlite3.connect(url, factory=kind, isolation_level=level)) as connection, connection:
            yield connection

    return opened


@asynccontextmanager
async def _sqlite_begun(url: str) -> AsyncIterator[sqlite3.Connection]:
    """Autocommit, with a transaction begun by hand; the connection's own block ends it."""
    with closing(sqlite3.connect(url, isolation_level=None)) as connection, connection:
        connection.execute("BEGIN")
        yield connection


@asynccontextmanager
async def _sqlite_savepoint(connection: sqlite3.Connection) -> AsyncIterator[None]:
    connection.execute("SAVEPOINT inner_one")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK TO inner_one")
        raise
    finally:
        connection.execute("RELEASE inner_one")


POSTGRES = [
    Way(
        name="psycopg Connection",
        transaction=blocking(psycopg.connect),
        savepoint=_psycopg_savepoint,
        autocommit=blocking(_psycopg_autocommit),
    ),
    Way(
        name="psycopg Connection, transaction()",
        transaction=blocking(_psycopg_explicit),
        savepoint=_psycopg_savepoint,
        autocommit=blocking(_psycopg_autocommit),
    ),
    Way(
        name="psycopg AsyncConnection",
        transaction=_psycopg_async,
        savepoint=lambda connection: connection.transaction(),
        autocommit=_psycopg_async_autocommit,
        awaited=True,
    ),
    *(
        Way(
            name=name,
            transaction=transaction,
            savepoint=_psycopg2_savepoint,
            autocommit=_psycopg2(autocommit=True, begun=False),
        )
        for name, transaction in (
            ("psycopg2 connection", _psycopg2()),
            ("psycopg2 connection with dicts as rows", _psycopg2(cursor_factory=RealDictCursor)),
            ("psycopg2 connection in autocommit, BEGIN", _psycopg2_begun),
            ("psycopg2 from a pool", _psycopg2_pool),
        )
    ),
    Way(
        name="asyncpg Connection",
        transaction=_asyncpg,
        savepoint=lambda connection: connection.transaction(),
        autocommit=_asyncpg_idle,
        awaited=True,
    ),
    Way(
        name="asyncpg from a pool",
        transaction=_asyncpg_pool,
        savepoint=lambda connection: connection.transaction(),
        autocommit=_asyncpg_pool_idle,
        awaited=True,
    ),
]

SQLITE = [
    Way(
        name="sqlite3.Connection",
        transaction=_sqlite(),
        savepoint=_sqlite_savepoint,
        autocommit=_sqlite(level=None),
    ),
    Way(
        name="a subclass of sqlite3.Connection",
        transaction=_sqlite(_OwnConnection, "IMMEDIATE"),
        savepoint=_sqlite_savepoint,
        autocommit=_sqlite(_OwnConnection, None),
    ),
    Way(
        name="sqlite3.Connection, BEGIN",
        transaction=_sqlite_begun,
        savepoint=_sqlite_savepoint,
        autocommit=_sqlite(level=None),
    ),
]
