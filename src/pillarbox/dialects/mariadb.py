"""MariaDB: one INSERT for any number of events, or several in a savepoint if they exceed what the server accepts.

A relay on the same database polls, so there are no notifications. The statements depend on no setting of the caller's
session: not on its `sql_mode`, its time zone, its isolation level or its character set.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from zlib import crc32

from pillarbox.connections import BoundStatement, Steps
from pillarbox.core.errors import layers
from pillarbox.core.rows import EventRow
from pillarbox.dialects.dialect import AppendOptions, Dialect, FailedWrite, WriteFailure
from pillarbox.statements import Names, StatementSet
from pillarbox.table_names import TableNames

PACKET = 4 * 1024 * 1024
"""Bytes of payloads in one INSERT. A quarter of the default `max_allowed_packet`, because escaping doubles a payload at
worst."""
KEY_LOCKS = 1024
"""Rows of the table that producers with strict order lock."""

_FAILURES = {
    1146: WriteFailure.TABLES_MISSING,
    1054: WriteFailure.TABLES_MISSING,
    1062: WriteFailure.DUPLICATE,
    1142: WriteFailure.FORBIDDEN,
    1143: WriteFailure.FORBIDDEN,
    1044: WriteFailure.FORBIDDEN,
    4025: WriteFailure.REJECTED,
    1406: WriteFailure.REJECTED,
}
_DRIVERS = ("asyncmy", "pymysql", "MySQLdb")
# Values that the server refuses: truncated, too long, without default, incorrect, against a constraint or a trigger.
_REFUSED = {1048, 1062, 1264, 1265, 1292, 1364, 1366, 1406, 1451, 1452, 1526, 1644, 1690, 4025}


@dataclass(frozen=True, slots=True, kw_only=True)
class MariaDBNames(Names):
    """Names in backticks, which every `sql_mode` accepts. The tables are in the database of the connection."""

    def qualified(self, name: str) -> str:
        return f"`{name}`"

    def placeholders(self) -> dict[str, str]:
        return {**Names.placeholders(self), "key_lock": self.qualified(f"{self.prefix}key_lock")}


class MariaDBAppender:
    """The statements of one outbox."""

    def __init__(self, statements: StatementSet, options: AppendOptions) -> None:
        variants = ["ignore_duplicates"] if options.ignore_duplicates else []
        self._one = statements.get("append", *variants)
        self._row = statements.get("appended_row")
        self._encoded_row = statements.get("appended_row_encoded")
        self._lock_keys = statements.get("lock_keys") if options.strict_order else None
        self._savepoint = BoundStatement(statements.get("begin_parts"))
        self._undo = BoundStatement(statements.get("undo_parts"))
        self._release = BoundStatement(statements.get("end_parts"))

    def steps(self, rows: Sequence[EventRow]) -> Steps[None]:
        """Lock the keys before the insert, so that sequences are assigned in the order in which the writers commit."""
        if self._lock_keys and (slots := sorted({_slot(row.key) for row in rows if row.key is not None})):
            yield BoundStatement(self._lock_keys.replace("$1", ", ".join(["$1"] * len(slots))), tuple(slots))
        parts = list(_parts(rows))
        if len(parts) == 1:
            yield self._insert(rows)
        else:
            yield from self._all_or_none(parts)

    def _all_or_none(self, parts: Sequence[Sequence[EventRow]]) -> Steps[None]:
        yield self._savepoint
        try:
            for part in parts:
                yield self._insert(part)
        except Exception:
            # After a deadlock the server has rolled back the whole transaction, and the savepoint with it.
            with suppress(Exception):
                yield self._undo
            raise
        yield self._release

    def _insert(self, rows: Sequence[EventRow]) -> BoundStatement:
        values = tuple(value for row in rows for value in _values(row))
        if all(not isinstance(value, str) or value.isascii() for value in values):
            row = self._row
        else:
            row, values = self._encoded_row, encoded(values)
        if len(rows) == 1 and row is self._row:
            return BoundStatement(self._one, values)
        return BoundStatement(self._one.replace(self._row, ", ".join([row] * len(rows))), values)


class MariaDBDialect(Dialect):
    """MariaDB 10.6 or newer."""

    name = "mariadb"

    def names(self, tables: TableNames) -> Names:
        """A schema of PostgreSQL has no counterpart."""
        return MariaDBNames(prefix=tables.prefix)

    def appender(self, statements: StatementSet, options: AppendOptions) -> MariaDBAppender:
        return MariaDBAppender(statements, options)

    def explain(self, error: Exception) -> FailedWrite | None:
        number = error_number(error)
        failure = _FAILURES.get(number)
        return None if failure is None else FailedWrite(failure)

    def inbox_values(self, row: tuple[object, ...]) -> tuple[object, ...]:
        return encoded(row)

    def grant(self, names: Names, table: str, privileges: str) -> str:
        # RETURNING needs the right to read.
        return super().grant(names, table, "SELECT, INSERT" if table == "inbox" else privileges)

    def refuses_value(self, error: Exception) -> bool:
        return error_number(error) in _REFUSED


def error_number(error: BaseException) -> int:
    """The server's number of an error, such as 1062; 0 if the exception has none."""
    for layer in layers(error):
        if type(layer).__module__.partition(".")[0] in _DRIVERS and layer.args and isinstance(layer.args[0], int):
            return layer.args[0]
    return 0


def encoded(values: Iterable[object]) -> tuple[object, ...]:
    """The values with each text as `encoded` in SQL decodes it."""
    return tuple(b64encode(value.encode()).decode() if isinstance(value, str) else value for value in values)


def _slot(key: str) -> int:
    return crc32(key.encode()) % KEY_LOCKS


def _values(row: EventRow) -> Iterator[object]:
    for value in row:
        # A driver would write the time as it stands and drop its offset.
        yield value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value


def _parts(rows: Sequence[EventRow]) -> Iterator[Sequence[EventRow]]:
    """The rows in as few statements as the server accepts."""
    first = size = 0
    for number, row in enumerate(rows):
        more = len(row.payload) + len(row.headers)
        if number > first and size + more > PACKET:
            yield rows[first:number]
            first, size = number, 0
        size += more
    yield rows[first:]


DIALECT = MariaDBDialect()
