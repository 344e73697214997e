"""SQLite as an adapter: `sqlite:///file.db`."""

from __future__ import annotations

import asyncio
import glob
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from pillarbox.admin.admin import AdminStore
from pillarbox.core.errors import StoreUnavailableError
from pillarbox.plugins import Producer, ScratchStore, StoreOptions, StorePlugin
from pillarbox.stores.sqlite.store import SqliteStore, path_of


class SqlitePlugin(StorePlugin):
    """`sqlite:///file.db`."""

    dialect = "sqlite"
    ignored = ("schema", "statement_timeout")
    scratch_stores = True

    def open(self, url: str, options: StoreOptions) -> AdminStore:
        return SqliteStore(
            url, tables=options.tables, history=options.history, ledger=options.ledger, max_payload=options.max_payload
        )

    def producer(self, url: str) -> Producer:
        return _Producer(url)

    def scratch(self, url: str, options: StoreOptions, name: str) -> ScratchStore:
        # Another file: tables of a benchmark would make this one grow for good.
        return _ScratchFile(f"{url}.{name}", options)


class _ScratchFile:
    """Another file in the same folder."""

    def __init__(self, url: str, options: StoreOptions) -> None:
        self.url, self.options = url, options

    async def existing(self) -> Sequence[str]:
        return [f"file {file}" for file in await asyncio.to_thread(self._files)]

    async def drop(self) -> None:
        await asyncio.to_thread(self._unlink)

    def _unlink(self) -> None:
        for file in self._files():
            file.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        """The file and those beside it; a relay that was killed leaves the file that it had locked."""
        file = Path(path_of(self.url))
        beside = [file.with_name(f"{file.name}{ending}") for ending in ("", "-wal", "-shm", "-journal")]
        return [found for found in (*beside, *file.parent.glob(f"{glob.escape(file.name)}-relay-*")) if found.exists()]


class _Producer:
    awaited = False

    def __init__(self, url: str) -> None:
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
