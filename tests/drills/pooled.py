"""Writers and consumers of a drill that reach PostgreSQL through the pooler at DRILL_POOLER, in its transaction mode.

As the documentation asks for, the drivers prepare no statements.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import asyncpg
import psycopg

from pillarbox.ops.drill.database import DrillTables
from pillarbox.plugins import Producer


class PsycopgProducer:
    """A connection of psycopg, replaced when it is broken."""

    awaited = True

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.AsyncConnection[Any] | None = None

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return self._transaction()

    async def aclose(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = await psycopg.AsyncConnection.connect(self._url, prepare_threshold=None)
        async with self._connection.transaction():
            yield self._connection


class AsyncpgProducer:
    """A connection of asyncpg, replaced when it is broken."""

    awaited = True

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return self._transaction()

    async def aclose(self) -> None:
        if self._connection is not None and not self._connection.is_closed():
            await self._connection.close()

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Any]:
        if self._connection is None or self._connection.is_closed():
            self._connection = await asyncpg.connect(self._url, statement_cache_size=0)
        async with self._connection.transaction():
            yield self._connection


def use_pooler(producer: Callable[[str], Producer]) -> None:
    """Let the transactions of this process go through the pooler."""

    def pooled(self: DrillTables) -> Producer:
        return producer(os.environ["DRILL_POOLER"])

    DrillTables.producer = pooled  # type: ignore[method-assign]
