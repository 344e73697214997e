"""sqlite3, directly and behind SQLAlchemy (there also through aiosqlite)."""

from __future__ import annotations

from typing import Any

from pillarbox.connections.connection import BoundStatement, Operation, Rows, Steps, T, drive, guarded
from pillarbox.connections.driver import BehindSqlAlchemy, Driver
from pillarbox.connections.placeholders import Style, render
from pillarbox.core.errors import InvalidConnectionError, NotInTransactionError

# sqlite3.LEGACY_TRANSACTION_CONTROL, the mode of Python 3.11 and the default ever since.
_LEGACY = -1


def guard(connection: Any, *, remedy: str) -> Steps[None]:
    """Raise NotInTransactionError if an INSERT on this connection would commit by itself."""
    yield from ()  # this driver answers without a statement
    if not _begins_by_itself(connection) and not connection.in_transaction:
        raise NotInTransactionError(
            "the SQLite connection is in autocommit mode and no transaction is open, so the INSERT would commit by "
            f"itself, apart from your own rows; {remedy}"
        )


def _begins_by_itself(connection: Any) -> bool:
    mode = getattr(connection, "autocommit", _LEGACY)
    if mode == _LEGACY:
        return connection.isolation_level is not None
    return not mode


class SqliteConnection:
    """`sqlite3.Connection`."""

    remedy = 'execute "BEGIN" first, or set isolation_level to "IMMEDIATE" and let sqlite3 begin'

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, operation: Operation[T]) -> T:
        self._check_open()
        steps = guarded(guard(self._connection, remedy=self.remedy), operation, "sqlite")
        return drive(steps, self._execute)

    def _execute(self, statement: BoundStatement) -> Rows:
        cursor = self._connection.cursor()
        cursor.row_factory = None
        try:
            rows: Rows = cursor.execute(render(statement.sql, Style.QUESTION), statement.parameters).fetchall()
        finally:
            cursor.close()
        return rows

    def _check_open(self) -> None:
        try:
            _ = self._connection.in_transaction
        except Exception as error:
            raise InvalidConnectionError(f"the sqlite3 connection cannot be used: {error}") from error


def _behind_sqlalchemy(connection: Any, _adapter: Any, remedy: str) -> Steps[None]:
    return guard(connection, remedy=remedy)


DRIVER = Driver(
    accepts="a sqlite3.Connection",
    connections={("sqlite3", "Connection"): SqliteConnection},
    behind_sqlalchemy={
        ("sqlite3", "Connection"): BehindSqlAlchemy("sqlite", Style.QUESTION, _behind_sqlalchemy, "sqlite+pysqlite"),
        ("aiosqlite", "Connection"): BehindSqlAlchemy("sqlite", Style.QUESTION, _behind_sqlalchemy, "sqlite+aiosqlite"),
    },
    remedies={
        ("sqlite3", "Cursor"): "pass the cursor's `.connection`",
        (
            "aiosqlite",
            "Connection",
        ): "aiosqlite is accepted through SQLAlchemy: create_async_engine('sqlite+aiosqlite://…')",
    },
)
