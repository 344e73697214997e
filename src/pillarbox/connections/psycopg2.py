"""psycopg2: connections of its own and those of its pools."""

from __future__ import annotations

import sys
from typing import Any

from pillarbox.connections.connection import Operation, Rows, Statement, Steps, T, drive, guarded
from pillarbox.connections.placeholders import Style, render
from pillarbox.connections.psycopg import probe
from pillarbox.core.errors import InvalidConnectionError, NotInTransactionError

# libpq's PGTransactionStatusType.
_IDLE = 0


def guard(connection: Any, *, remedy: str) -> Steps[None]:
    """Raise NotInTransactionError if an INSERT on this connection would commit by itself."""
    if connection.closed:
        raise InvalidConnectionError("the psycopg2 connection is closed; pass an open one")
    if connection.async_:
        raise InvalidConnectionError(
            "the psycopg2 connection is asynchronous, and those commit every statement by themselves; "
            "pass one that was opened without async_, or use psycopg's AsyncConnection"
        )
    if not connection.autocommit:
        return
    if connection.info.transaction_status == _IDLE:
        # `with connection:` opens a transaction also in autocommit mode, but only with its first statement.
        yield probe()
    if connection.info.transaction_status == _IDLE:
        raise NotInTransactionError(
            "the connection is in autocommit mode and no transaction is open, so the INSERT would commit by itself, "
            f"apart from your own rows; {remedy}"
        )


class Psycopg2Connection:
    """`psycopg2.extensions.connection` and its subclasses."""

    remedy = "wrap both in `with connection:`"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, operation: Operation[T]) -> T:
        return drive(guarded(guard(self._connection, remedy=self.remedy), operation, "postgresql"), self._execute)

    def _execute(self, statement: Statement) -> Rows:
        # The plain cursor gives tuples, whichever cursor factory the caller chose for the connection.
        with self._connection.cursor(cursor_factory=sys.modules["psycopg2.extensions"].cursor) as cursor:
            cursor.execute(render(statement.sql, Style.PERCENT), statement.parameters)
            rows: Rows = cursor.fetchall() if cursor.description else ()
        return rows
