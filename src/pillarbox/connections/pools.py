"""Pools, engines and session factories: each opens a transaction, which commits when its block succeeds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any

Open = Callable[[Any], AbstractContextManager[Any]]
AsyncOpen = Callable[[Any], AbstractAsyncContextManager[Any]]


def _begin(factory: Any) -> Any:
    return factory.begin()


@contextmanager
def _borrow(pool: Any) -> Iterator[Any]:
    connection = pool.getconn()
    try:
        with connection:
            yield connection
    finally:
        pool.putconn(connection)


@asynccontextmanager
async def _acquire(pool: Any) -> AsyncIterator[Any]:
    async with pool.acquire() as connection, connection.transaction():
        yield connection


SYNC: dict[tuple[str, str], Open] = {
    ("sqlalchemy", "Engine"): _begin,
    ("sqlalchemy", "sessionmaker"): _begin,
    ("psycopg2", "AbstractConnectionPool"): _borrow,
}
ASYNC: dict[tuple[str, str], AsyncOpen] = {
    ("sqlalchemy", "AsyncEngine"): _begin,
    ("sqlalchemy", "async_sessionmaker"): _begin,
    ("asyncpg", "Pool"): _acquire,
}
