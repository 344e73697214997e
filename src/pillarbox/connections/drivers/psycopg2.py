"""psycopg2: connections and pools."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pillarbox.connections.connection import BoundStatement, Operation, Rows, Steps, T, drive, guarded
from pillarbox.connections.driver import BehindSqlAlchemy, Driver
from pillarbox.connections.drivers.psycopg import guard_behind_sqlalchemy, probe
from pillarbox.connections.placeholders import Style, render
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
        return drive(guarded(guard(self._connection, remedy=self.remedy), operation, "postgres"), self._execute)

    def _execute(self, statement: BoundStatement) -> Rows:
        # The plain cursor gives tuples, whichever cursor factory the caller chose for the connection.
        with self._connection.cursor(cursor_factory=sys.modules["psycopg2.extensions"].cursor) as cursor:
            cursor.execute(render(statement.sql, Style.PERCENT), statement.parameters)
            rows: Rows = cursor.fetchall() if cursor.description else ()
        return rows


@contextmanager
def _borrow(pool: Any) -> Iterator[Any]:
    connection = pool.getconn()
    try:
        with connection:
            yield connection
    finally:
        pool.putconn(connection)


DRIVER = Driver(
    accepts="a psycopg2 connection",
    connections={("psycopg2", "connection"): Psycopg2Connection},
    pools={("psycopg2", "AbstractConnectionPool"): _borrow},
    behind_sqlalchemy={
        ("psycopg2", "connection"): BehindSqlAlchemy(
            "postgres", Style.PERCENT, guard_behind_sqlalchemy, "postgresql+psycopg2"
        )
    },
    remedies={
        ("psycopg2", "cursor"): "pass the cursor's `.connection`",
        ("psycopg2", "AbstractConnectionPool"): "pass `pool.getconn()`, in a block `with connection:`",
    },
)
