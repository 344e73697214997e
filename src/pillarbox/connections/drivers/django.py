"""Django: the connection of an alias, as in `connections["default"]` or `django.db.connection`.

The statements pass through Django's cursor: its query log, its execute wrappers and its error classes apply to them.
Any driver that Django uses works, mysqlclient too. Django itself knows whether a transaction is open.
"""

from __future__ import annotations

from typing import Any

from pillarbox.connections.connection import BoundStatement, Operation, Rows, T, drive
from pillarbox.connections.driver import Driver
from pillarbox.connections.placeholders import Style, render
from pillarbox.core.errors import InvalidConnectionError, NotInTransactionError

DIALECTS = {"postgresql": "postgres", "sqlite": "sqlite", "mysql": "mariadb"}
"""Django's vendor → the dialect."""


class DjangoConnection:
    """A `django.db.backends.base.base.BaseDatabaseWrapper`, or the proxy `django.db.connection`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, operation: Operation[T]) -> T:
        connection = self._connection
        if connection.vendor not in DIALECTS:
            raise InvalidConnectionError(
                f"the database {connection.alias!r} of DATABASES is {connection.vendor}, which Pillarbox does not "
                f"support; use one of {', '.join(DIALECTS)}"
            )
        if connection.get_autocommit() or _is_opened_by_test_case(connection):
            raise NotInTransactionError(
                f"no transaction is open on the database {connection.alias!r} of DATABASES, so the INSERT would commit "
                f"by itself, apart from your own rows; wrap both in `with transaction.atomic({_using(connection)}):`"
            )
        return drive(operation(DIALECTS[connection.vendor]), self._execute)

    def _execute(self, statement: BoundStatement) -> Rows:
        with self._connection.cursor() as cursor:
            # Django's cursor takes %s on every engine.
            cursor.execute(render(statement.sql, Style.PERCENT), statement.parameters)
            rows: Rows = cursor.fetchall() if cursor.description else ()
        return rows


def _is_opened_by_test_case(connection: Any) -> bool:
    """Whether only Django's TestCase has opened a transaction: in production there would be none."""
    blocks: list[Any] = connection.atomic_blocks
    return bool(blocks) and all(getattr(block, "_from_testcase", False) for block in blocks)


def _using(connection: Any) -> str:
    return "" if connection.alias == "default" else f"using={connection.alias!r}"


DRIVER = Driver(
    accepts="a connection of Django",
    connections={
        ("django", "BaseDatabaseWrapper"): DjangoConnection,
        ("django", "ConnectionProxy"): DjangoConnection,
    },
    remedies={
        ("django", "ConnectionHandler"): 'pass the connection of one alias, as in `connections["default"]`',
        ("django", "CursorWrapper"): "pass the connection itself, as in `django.db.connection`",
        ("django", "Atomic"): "pass the connection itself, as in `django.db.connection`",
    },
)
