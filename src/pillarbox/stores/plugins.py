"""Our stores, as `pillarbox.plugins` opens them. A driver is imported only when its store is opened."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pillarbox.admin.admin import AdminStore
from pillarbox.core.errors import StoreUnavailableError
from pillarbox.plugins import Producer, ScratchStore, StoreOptions, StorePlugin
from pillarbox.statements import StatementSet, load


class PostgresPlugin(StorePlugin):
    """`postgresql://…`."""

    scratch_stores = True

    def open(self, url: str, options: StoreOptions) -> AdminStore:
        from pillarbox.stores.postgres import PostgresStore

        return PostgresStore(
            url,
            tables=options.tables,
            history=options.history,
            ledger=options.ledger,
            max_payload=options.max_payload,
            statement_timeout=options.statement_timeout,
        )

    def producer(self, url: str) -> Producer:
        return _PostgresProducer(url)

    def scratch(self, url: str, options: StoreOptions, name: str) -> ScratchStore:
        return _PostgresScratch(url, replace(options, tables=replace(options.tables, prefix=f"{name}_outbox_")))


class SqlitePlugin(StorePlugin):
    """`sqlite:///file.db`."""

    scratch_stores = True

    def open(self, url: str, options: StoreOptions) -> AdminStore:
        from pillarbox.stores.sqlite import SqliteStore

        return SqliteStore(
            url, tables=options.tables, history=options.history, ledger=options.ledger, max_payload=options.max_payload
        )

    def producer(self, url: str) -> Producer:
        return _SqliteProducer(url)

    def scratch(self, url: str, options: StoreOptions, name: str) -> ScratchStore:
        # Another file: tables of a benchmark would make this one grow for good.
        return _SqliteScratch(f"{url}.{name}", options)


class MemoryPlugin(StorePlugin):
    """`memory://`."""

    shared = False

    def open(self, url: str, options: StoreOptions) -> AdminStore:
        from pillarbox.stores.memory import MemoryStore

        return MemoryStore(history=options.history, ledger=options.ledger)


class _PostgresScratch:
    """Tables with another prefix in the same schema."""

    def __init__(self, url: str, options: StoreOptions) -> None:
        self.url, self.options = url, options

    async def drop(self) -> None:
        from pillarbox.stores.postgres.connection import Connection

        names = self.options.tables.postgres
        statements = StatementSet(names, load("pillarbox.stores", "postgres"))
        async with aclosing(Connection(self.url)) as connection:
            await connection.execute(statements.get("drop_prefix", schema=self.options.tables.schema))


class _SqliteScratch:
    """Another file in the same folder."""

    def __init__(self, url: str, options: StoreOptions) -> None:
        self.url, self.options = url, options

    async def drop(self) -> None:
        await asyncio.to_thread(self._unlink)

    def _unlink(self) -> None:
        from pillarbox.stores.sqlite.store import path_of

        for ending in ("", "-wal", "-shm", "-journal"):
            Path(f"{path_of(self.url)}{ending}").unlink(missing_ok=True)


class _PostgresProducer:
    awaited = True

    def __init__(self, url: str) -> None:
        from pillarbox.stores.postgres.connection import Connection

        # The limits of the tables apply to it, as to any producer.
        self._connection = Connection(url, internal=False)

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return self._transaction()

    async def aclose(self) -> None:
        await self._connection.aclose()

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Any]:
        async with self._connection.open() as driver, driver.transaction():
            yield driver


class _SqliteProducer:
    awaited = False

    def __init__(self, url: str) -> None:
        from pillarbox.stores.sqlite.store import path_of

        self._path = path_of(url)
        self._connection: sqlite3.Connection | None = None

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return self._transaction()

    async def aclose(self) -> None:
        if self._connection is not None:
            self._connection.close()

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Any]:
        try:
            if self._connection is None:
                self._connection = sqlite3.connect(self._path, isolation_level="IMMEDIATE")
            with self._connection:
                yield self._connection
        except sqlite3.Error as error:
            raise StoreUnavailableError(
                f"SQLite failed on {self._path}: {type(error).__name__}: {error}; check the file and its folder"
            ) from error
