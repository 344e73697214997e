"""PyMySQL: connections. The status that the server sends with each reply tells whether a transaction is open."""

from __future__ import annotations

import sys
from typing import Any

from pillarbox.connections.connection import BoundStatement, Operation, Rows, Steps, T, drive, guarded
from pillarbox.connections.driver import BehindSqlAlchemy, Driver
from pillarbox.connections.placeholders import Style, render
from pillarbox.core.errors import InvalidConnectionError, NotInTransactionError

# SERVER_STATUS_IN_TRANS of the protocol.
_IN_TRANSACTION = 1


def guard(connection: Any, *, remedy: str) -> Steps[None]:
    """Raise NotInTransactionError if an INSERT on this connection of PyMySQL or asyncmy would commit by itself."""
    yield from ()  # these drivers answer without a statement
    if connection.get_autocommit() and not connection.server_status & _IN_TRANSACTION:
        raise NotInTransactionError(
            "the connection is in autocommit mode and no transaction is open, so the INSERT would commit by itself, "
            f"apart from your own rows; {remedy}"
        )


class PyMySQLConnection:
    """`pymysql.connections.Connection`."""

    remedy = "call `connection.begin()` first, or open it without autocommit"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, operation: Operation[T]) -> T:
        if not self._connection.open:
            raise InvalidConnectionError("the PyMySQL connection is closed; pass an open one")
        return drive(guarded(guard(self._connection, remedy=self.remedy), operation, "mariadb"), self._execute)

    def _execute(self, statement: BoundStatement) -> Rows:
        # The plain cursor gives tuples, whichever cursor class the caller chose for the connection.
        with self._connection.cursor(sys.modules["pymysql.cursors"].Cursor) as cursor:
            cursor.execute(render(statement.sql, Style.PERCENT), statement.parameters)
            rows: Rows = cursor.fetchall() if cursor.description else ()
        return rows


def guard_behind_sqlalchemy(connection: Any, _adapter: Any, remedy: str) -> Steps[None]:
    """`guard` for SQLAlchemy, which opens a transaction by switching autocommit off."""
    return guard(connection, remedy=remedy)


DRIVER = Driver(
    accepts="a PyMySQL connection",
    connections={("pymysql", "Connection"): PyMySQLConnection},
    behind_sqlalchemy={
        ("pymysql", "Connection"): BehindSqlAlchemy("mariadb", Style.PERCENT, guard_behind_sqlalchemy, "mysql+pymysql")
    },
    remedies={("pymysql", "Cursor"): "pass the cursor's `.connection`"},
)
