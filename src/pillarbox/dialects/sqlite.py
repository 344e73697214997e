"""SQLite: one INSERT for any number of events.

SQLite has one writer at a time, so there are no locks. A relay on the same file polls, so there are no notifications.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pillarbox.connections import BoundStatement, Steps
from pillarbox.connections.driver_errors import driver_message
from pillarbox.core.clock import timestamp
from pillarbox.core.errors import layers
from pillarbox.core.rows import EventRow
from pillarbox.dialects.dialect import AppendOptions, Dialect, FailedWrite, WriteFailure
from pillarbox.statements import Names, StatementSet
from pillarbox.table_names import TableNames

_MILLISECOND = timedelta(milliseconds=1)
# SQLITE_ERROR is the code of many other errors as well.
_NO_TABLE = re.compile("^no such table|has no column named")
_FAILURES = {
    "SQLITE_CONSTRAINT_PRIMARYKEY": WriteFailure.DUPLICATE,
    "SQLITE_CONSTRAINT_UNIQUE": WriteFailure.DUPLICATE,
    "SQLITE_CONSTRAINT_CHECK": WriteFailure.REJECTED,
    "SQLITE_CONSTRAINT_TRIGGER": WriteFailure.REJECTED,
}


class SqliteAppender:
    """The statement of one outbox."""

    def __init__(self, statements: StatementSet, options: AppendOptions) -> None:
        variants = ["ignore_duplicates"] if options.ignore_duplicates else []
        self._append = statements.get("append", *variants)

    def steps(self, rows: Sequence[EventRow]) -> Steps[None]:
        yield BoundStatement(self._append, (b"".join(row.payload for row in rows), _texts(rows)))


class SqliteDialect(Dialect):
    """SQLite 3.35 or newer."""

    name = "sqlite"

    def names(self, tables: TableNames) -> Names:
        """SQLite has no schemas."""
        return Names(prefix=tables.prefix)

    def appender(self, statements: StatementSet, options: AppendOptions) -> SqliteAppender:
        return SqliteAppender(statements, options)

    def explain(self, error: Exception) -> FailedWrite | None:
        code = _code(error)
        if code == "SQLITE_ERROR" and _NO_TABLE.search(driver_message(error)):
            return FailedWrite(WriteFailure.TABLES_MISSING)
        failure = _FAILURES.get(code)
        return None if failure is None else FailedWrite(failure)

    def refuses_value(self, error: Exception) -> bool:
        return _code(error).startswith(("SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_TOOBIG"))


def _code(error: BaseException) -> str:
    """SQLite's extended code by name, such as SQLITE_CONSTRAINT_PRIMARYKEY; '' if the exception has none."""
    for layer in layers(error):
        name = getattr(layer, "sqlite_errorname", None)
        if isinstance(name, str):
            return name
    return ""


def _texts(rows: Sequence[EventRow]) -> str:
    """All columns but the payloads, and the position of each payload in the blob (SQLite counts from 1)."""
    given: list[list[object]] = []
    start = 1
    for row in rows:
        *texts, occurred_at, available_at = row[:6] + row[7:]
        due = None if available_at is None else encode_time(available_at, round_up=True)
        given.append([*texts, timestamp(occurred_at), due, start, len(row.payload)])
        start += len(row.payload)
    return json.dumps(given, ensure_ascii=False)


def encode_time(at: datetime, *, round_up: bool = False) -> str:
    """A time as SQL compares it: with milliseconds, as SQLite's clock has. `round_up`: no event is due too early."""
    utc = at.astimezone(UTC).replace(tzinfo=None)
    beyond = utc.microsecond % 1000
    if round_up and beyond and utc <= datetime.max - _MILLISECOND:
        utc += _MILLISECOND - timedelta(microseconds=beyond)
    return utc.isoformat(timespec="milliseconds") + "Z"


DIALECT = SqliteDialect()
