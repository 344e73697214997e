"""Pools, engines and session factories: each opens a transaction of its own, which commits when its block ends well."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from typing import Any

Open = Callable[[Any], AbstractContextManager[Any]]
AsyncOpen = Callable[[Any], AbstractAsyncContextManager[Any]]


def _begin(factory: Any) -> Any:
    return factory.begin()


@asynccontextmanager
async def _acquire(pool: Any) -> AsyncIterator[Any]:
    async with pool.acquire() as connection, connection.transaction():
        yield connection


SYNC: dict[tuple[str, str], Open] = {
    ("sqlalchemy", "Engine"): _begin,
    ("sqlalchemy", "sessionmaker"): _begin,
}
ASYNC: dict[tuple[str, str], AsyncOpen] = {
    ("sqlalchemy", "AsyncEngine"): _begin,
    ("sqlalchemy", "async_sessionmaker"): _begin,
    ("asyncpg", "Pool"): _acquire,
}
