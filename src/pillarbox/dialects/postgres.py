"""PostgreSQL: one INSERT for any number of events, which also notifies an idle relay.

A producer needs no privilege but INSERT on the message table: an advisory lock shows whether a relay is idle.
"""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.connections import BoundStatement, Steps
from pillarbox.core.errors import layers
from pillarbox.core.rows import EventRow
from pillarbox.dialects.dialect import AppendOptions, Dialect, FailedWrite, WriteFailure
from pillarbox.statements import Names, StatementSet
from pillarbox.table_names import TableNames

_FAILURES = {
    "42P01": WriteFailure.TABLES_MISSING,
    "3F000": WriteFailure.TABLES_MISSING,
    "42703": WriteFailure.TABLES_MISSING,
    "23505": WriteFailure.DUPLICATE,
    "42501": WriteFailure.FORBIDDEN,
    "23514": WriteFailure.REJECTED,
    "25P02": WriteFailure.ABORTED,
}


class PostgresAppender:
    """The statements of one outbox."""

    def __init__(self, statements: StatementSet, options: AppendOptions) -> None:
        chosen = {"ignore_duplicates": options.ignore_duplicates, "notify": options.notify}
        variants = [variant for variant, wanted in chosen.items() if wanted]
        self._one = statements.get("append_one", *variants)
        self._many = statements.get("append", *variants)
        self._lock_keys = statements.get("lock_keys")
        self._strict_order = options.strict_order

    def steps(self, rows: Sequence[EventRow]) -> Steps[None]:
        """Lock the keys before the insert, so that sequences are assigned in the order in which the writers commit."""
        if self._strict_order and (keys := sorted({row.key for row in rows if row.key is not None})):
            yield BoundStatement(self._lock_keys, (keys,))
        if len(rows) == 1:
            yield BoundStatement(self._one, rows[0])
        else:
            yield BoundStatement(self._many, tuple(list(column) for column in zip(*rows, strict=True)))


class PostgresDialect(Dialect):
    """PostgreSQL 14 or newer."""

    name = "postgres"
    after_duplicate = "; roll the transaction back, or to a savepoint"

    def names(self, tables: TableNames) -> Names:
        return Names(prefix=tables.prefix, schema=tables.schema)

    def appender(self, statements: StatementSet, options: AppendOptions) -> PostgresAppender:
        return PostgresAppender(statements, options)

    def explain(self, error: Exception) -> FailedWrite | None:
        failure = _FAILURES.get(_sqlstate(error))
        return None if failure is None else FailedWrite(failure, _detail(error))

    def refuses_value(self, error: Exception) -> bool:
        return _sqlstate(error).startswith(("22", "23"))

    def grant(self, names: Names, table: str, privileges: str) -> str:
        return f'{super().grant(names, table, privileges)}, and USAGE ON SCHEMA "{names.schema}"'


def _sqlstate(error: BaseException) -> str:
    """PostgreSQL's five-character code; '' if the exception has none."""
    for layer in layers(error):
        for name in ("sqlstate", "pgcode"):
            code = getattr(layer, name, None)
            if isinstance(code, str) and len(code) == 5:
                return code
    return ""


def _detail(error: BaseException) -> str:
    """PostgreSQL's DETAIL; '' if there is none, as for roles that lack the permission to see the row."""
    for layer in layers(error):
        told = getattr(getattr(layer, "diag", None), "message_detail", None) or getattr(layer, "detail", None)
        if isinstance(told, str) and told:
            return told
    return ""


DIALECT = PostgresDialect()
