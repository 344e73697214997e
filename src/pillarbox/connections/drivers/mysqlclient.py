"""mysqlclient: connections. It does not tell whether a transaction is open: in autocommit mode, the server is asked."""

from __future__ import annotations

import sys
from typing import Any

from pillarbox.connections.connection import BoundStatement, Operation, Rows, Steps, T, drive, guarded
from pillarbox.connections.driver import BehindSqlAlchemy, Driver
from pillarbox.connections.placeholders import Style, render
from pillarbox.core.errors import InvalidConnectionError, NotInTransactionError
from pillarbox.statements import Names, StatementSet, load_statements


def guard(connection: Any, *, remedy: str) -> Steps[None]:
    """Raise NotInTransactionError if an INSERT on this connection would commit by itself."""
    if not connection.open:
        raise InvalidConnectionError("the mysqlclient connection is closed; pass an open one")
    if not connection.get_autocommit():
        return
    statements = StatementSet(Names(), load_statements("pillarbox.connections.drivers", "mysqlclient"))
    [(is_open,)] = yield BoundStatement(statements.get("in_transaction"))
    if not is_open:
        raise NotInTransactionError(
            "the connection is in autocommit mode and no transaction is open, so the INSERT would commit by itself, "
            f"apart from your own rows; {remedy}"
        )


class MysqlclientConnection:
    """`MySQLdb.connections.Connection`."""

    remedy = "call `connection.begin()` first, or open it without autocommit"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, operation: Operation[T]) -> T:
        return drive(guarded(guard(self._connection, remedy=self.remedy), operation, "mariadb"), self._execute)

    def _execute(self, statement: BoundStatement) -> Rows:
        # The plain cursor gives tuples, whichever cursor class the caller chose for the connection.
        with self._connection.cursor(sys.modules["MySQLdb.cursors"].Cursor) as cursor:
            cursor.execute(render(statement.sql, Style.PERCENT), statement.parameters)
            rows: Rows = cursor.fetchall() if cursor.description else ()
        return rows


def guard_behind_sqlalchemy(connection: Any, _adapter: Any, remedy: str) -> Steps[None]:
    """`guard` for SQLAlchemy, which opens a transaction by switching autocommit off."""
    return guard(connection, remedy=remedy)


DRIVER = Driver(
    accepts="a mysqlclient connection",
    connections={("MySQLdb", "Connection"): MysqlclientConnection},
    behind_sqlalchemy={
        ("MySQLdb", "Connection"): BehindSqlAlchemy("mariadb", Style.PERCENT, guard_behind_sqlalchemy, "mysql+mysqldb")
    },
    remedies={("MySQLdb", "BaseCursor"): "pass the cursor's `.connection`"},
)
