"""The one connection of a store, on a thread of its own: SQLite has one writer at a time, and it blocks.

Every piece of work is one transaction that begins and ends on that thread, so a cancelled caller never leaves one
half done. Any event loop may call, the heartbeat's too. No driver exception leaves this file.

The thread releases Python's lock for each statement and each row. A busy event loop returns it only after 5 ms, so
work that runs concurrently with handlers is one statement with one row.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from pillarbox.core.clock import Clock
from pillarbox.core.errors import (
    ConfigurationError,
    PillarboxError,
    RowsRefusedError,
    SchemaError,
    StoreUnavailableError,
)
from pillarbox.stores.splitting import split_statements
from pillarbox.stores.sqlite.statements import SqliteStatements

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

OLDEST = (3, 35, 0)
"""RETURNING and UPDATE … FROM."""

END_TRANSACTION = "end its transaction, or the process that stays in it (`fuser FILE` names the processes)"
"""What to do about a writer that keeps the lock."""

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_FACTS_ABOUT_ROWS = (sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG)
_NEXT = {
    sqlite3.SQLITE_CANTOPEN: "check that its folder exists, that this user has permission to write in it, and that "
    "this process has not reached its limit on open files (ulimit -n)",
    sqlite3.SQLITE_READONLY: "check that this user has permission to write the file and in its folder",
    sqlite3.SQLITE_FULL: "free some disk space",
    sqlite3.SQLITE_NOTADB: "check that store.url names the right file",
    sqlite3.SQLITE_CORRUPT: "PRAGMA integrity_check tells how much is left; restore it from a backup",
}
_ANY = "check disk space and file permissions; `pillarbox doctor` checks the file"
_PAUSE = 0.01


class SqliteStoreConnection:
    """The connection, opened when first needed; a read creates no file. ConfigurationError: SQLite is too old."""

    def __init__(self, path: Path, statements: SqliteStatements, *, busy_timeout: float, clock: Clock) -> None:
        if sqlite3.sqlite_version_info < OLDEST:
            raise ConfigurationError(
                f"this Python is linked to SQLite {sqlite3.sqlite_version}; SqliteStore needs "
                f"{'.'.join(map(str, OLDEST))} or newer"
            )
        self._path = path
        self._settings = statements.script("connection_settings")
        self._busy_timeout = busy_timeout
        self._clock = clock
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pillarbox-sqlite")
        self._connection: sqlite3.Connection | None = None
        self._closed = False

    @property
    def has_file(self) -> bool:
        """Whether the file exists."""
        return self._path.exists()

    async def read(self, work: Work[T]) -> T:
        """Run `work` on one snapshot. Raises StoreUnavailableError or SchemaError."""
        return await self._run("BEGIN", work)

    async def ask(self, work: Work[T]) -> T:
        """Run `work` that is one statement, a transaction of its own. Raises StoreUnavailableError or SchemaError."""
        return await self._run("", work)

    async def write(self, work: Work[T], *, make: bool = False) -> T:
        """Run `work` as the only writer; if it raises, it wrote nothing. Raises StoreUnavailableError or SchemaError.

        make: create the file if it does not exist.
        """
        return await self._run("BEGIN IMMEDIATE", work, make=make)

    async def aclose(self) -> None:
        """Close; closing twice is fine."""
        if self._closed:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    async def _run(self, begin: str, work: Work[T], *, make: bool = False) -> T:
        if self._closed:
            raise StoreUnavailableError(f"the store on {self._path} is closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._transact, begin, work, make)

    def _transact(self, begin: str, work: Work[T], make: bool) -> T:
        try:
            connection = self._opened(make=make)
            if not begin:
                return work(connection)
            connection.execute(begin)
            try:
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise self._translated(error) from error
        return result

    def _opened(self, *, make: bool) -> sqlite3.Connection:
        if self._connection is None:
            if not (make or self.has_file):
                raise SchemaError(f"there is no file {self._path}: name the right one, or run `{SchemaError.command}`")
            connection = sqlite3.connect(self._path, timeout=self._busy_timeout, isolation_level=None)
            try:
                # A text that was cast from bytes must not fail a whole read.
                connection.text_factory = _text
                # Called inside a statement: later than every commit that the statement sees.
                connection.create_function("elapsed", 0, self._clock.monotonic)
                self._set_up(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        # The change to WAL does not wait for other connections, whatever the timeout.
        end = time.monotonic() + self._busy_timeout
        while True:
            try:
                for statement in split_statements(self._settings):
                    connection.execute(statement)
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() >= end:
                    raise
                time.sleep(_PAUSE)
            else:
                return

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _translated(self, error: sqlite3.Error) -> PillarboxError:
        if str(error).startswith(("no such table", "no such column")):
            return SchemaError(f"{self._path}: {error}; run `{SchemaError.command}`")
        if _is_busy(error):
            return StoreUnavailableError(
                f"{self._path} was locked by another writer for longer than {self._busy_timeout:g} s: {END_TRANSACTION}"
            )
        if _code(error) in _FACTS_ABOUT_ROWS:
            return RowsRefusedError(f"SQLite refuses a row in {self._path}: {error}")
        failure = f"SQLite failed on {self._path}: {type(error).__name__}: {error}"
        return StoreUnavailableError(f"{failure}; {_NEXT.get(_code(error), _ANY)}")


def _is_busy(error: sqlite3.Error) -> bool:
    return _code(error) in _BUSY


def _code(error: sqlite3.Error) -> int:
    # The low byte is the primary code; extended codes say more than is needed here.
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def rows_with_valid_text(db: sqlite3.Connection, statement: str, given: Mapping[str, object]) -> list[tuple[Any, ...]]:
    """All rows of a read. Strict decoding first, because it costs a third; after invalid text it reads again."""
    db.text_factory = str
    try:
        return db.execute(statement, given).fetchall()
    except sqlite3.OperationalError as error:
        if not str(error).startswith("Could not decode"):
            raise
    finally:
        db.text_factory = _text
    return db.execute(statement, given).fetchall()


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
