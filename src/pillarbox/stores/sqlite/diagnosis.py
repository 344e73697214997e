"""Checks of a SQLite file for `pillarbox doctor`, and the sizes of its parts.

The checks first open the file read-only: the connection of the store would create a missing file, and change the
journal of an existing one.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from pillarbox.admin.diagnosis import (
    EXAMINED,
    LONG_TRANSACTION,
    MANY_ATTEMPTS,
    Check,
    CheckResult,
    RetriedSummary,
    TableSize,
    TableSizes,
    commonest,
    failed,
    passed,
    schema_checks,
    warned,
)
from pillarbox.core.errors import SchemaError, StoreUnavailableError
from pillarbox.stores.sqlite.connection import SqliteStoreConnection
from pillarbox.stores.sqlite.schema import SqliteSchema
from pillarbox.stores.sqlite.statements import SqliteStatements

MUCH_ROOM = 10 << 20
"""Unused bytes of a file above which the check warns."""
LONG_LOG = 64 << 20
"""Bytes of a write-ahead log above which the check warns: a reader prevents the checkpoint."""
_TIMEOUT = 5.0


class FileFacts(NamedTuple):
    """Facts of a file."""

    journal: str
    pages: int
    free: int
    page_size: int


class SqliteDiagnosis:
    """See `pillarbox.admin.diagnosis.Diagnosis`."""

    def __init__(
        self, path: Path, connection: SqliteStoreConnection, statements: SqliteStatements, schema: SqliteSchema
    ) -> None:
        self._path = path
        self._connection = connection
        self._schema = schema
        self._facts = statements.get("diagnosis_file")
        self._tried = statements.get("diagnosis_retried")

    def checks(self, *, long_transaction: float = LONG_TRANSACTION) -> Sequence[Check]:
        return [
            Check(name="store.reachable", ask=self._reachable, prerequisite=True),
            Check(name="store.journal", ask=self._journal, prerequisite=True),
            *schema_checks(self._schema),
            Check(name="store.lock", ask=self._lock),
            Check(name="store.bloat", ask=self._bloat),
            Check(name="store.horizon", ask=self._horizon),
        ]

    async def retried(self, more_than: int = MANY_ATTEMPTS) -> RetriedSummary:
        given = {"first": EXAMINED, "more_than": more_than}
        rows = await self._connection.read(lambda db: db.execute(self._tried, given).fetchall())
        return commonest((error, event_id) for error, event_id in rows)

    async def table_sizes(self) -> TableSizes:
        facts = await self._file()
        used, free = (facts.pages - facts.free) * facts.page_size, facts.free * facts.page_size
        parts = [
            TableSize("used", None, None, used),
            TableSize("free", None, None, free),
            TableSize("log", None, None, self._log()),
        ]
        return TableSizes(sorted(parts, key=lambda part: -part.bytes))

    async def _reachable(self) -> CheckResult:
        if not self._path.is_file():
            return failed(
                f"there is no file {self._path}",
                f"`{SchemaError.command}` creates it; or set store.url to the right one",
            )
        try:
            await self._file()
        except StoreUnavailableError as error:
            return failed(str(error), "check that it is a SQLite file and that this user has permission to read it")
        return passed(f"SQLite {sqlite3.sqlite_version}, {self._path}")

    async def _journal(self) -> CheckResult:
        journal = (await self._file()).journal
        if journal != "wal":
            return failed(
                f"the journal is {journal!r}: readers and writers block each other",
                "start a relay once, which changes it, or PRAGMA journal_mode = WAL",
            )
        return passed("readers and the writer do not wait for each other (WAL)")

    async def _lock(self) -> CheckResult:
        try:
            await self._connection.write(lambda _: None)
        except StoreUnavailableError as error:
            return failed(
                str(error), "end the transaction that holds the write lock: nothing is recorded or sent until then"
            )
        return passed("writers get the lock in time")

    async def _bloat(self) -> CheckResult:
        facts = await self._file()
        free, size = facts.free * facts.page_size, facts.pages * facts.page_size
        if free > MUCH_ROOM and free * 2 > size:
            return warned(
                f"{free >> 20} of the file's {size >> 20} MiB are free pages",
                "SQLite uses them again; to return them to the disk, VACUUM while nothing else runs",
            )
        return passed("the file is not much larger than what is in it")

    async def _horizon(self) -> CheckResult:
        if (size := self._log()) > LONG_LOG:
            return warned(
                f"the write-ahead log has grown to {size >> 20} MiB: a reader stays in its transaction",
                "end the process that reads for so long; SQLite truncates the log when no reader is left",
            )
        return passed("no reader holds the write-ahead log")

    def _log(self) -> int:
        log = self._path.with_name(self._path.name + "-wal")
        return log.stat().st_size if log.exists() else 0

    async def _file(self) -> FileFacts:
        return await asyncio.to_thread(self._read_facts)

    def _read_facts(self) -> FileFacts:
        try:
            address = f"file:{quote(str(self._path))}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, timeout=_TIMEOUT)) as file:
                return FileFacts._make(file.execute(self._facts).fetchone())
        except sqlite3.Error as error:
            raise StoreUnavailableError(f"{self._path} cannot be read ({type(error).__name__}: {error})") from error
