"""SQLite under the operators' half: parameters by name, times and lists as text."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from pillarbox.core.message import EARLIEST
from pillarbox.dialects.sqlite import encode_time
from pillarbox.stores.admin.engine import Parameters, ResultRow, StatementSteps, T
from pillarbox.stores.sqlite.connection import SqliteStoreConnection
from pillarbox.stores.sqlite.statements import SqliteStatements
from pillarbox.stores.sqlite.timestamps import decode_time

EVER = "0000-01-01T00:00:00.000Z"


class SqliteEngine:
    """See `pillarbox.stores.admin.engine.Engine`."""

    def __init__(self, connection: SqliteStoreConnection, statements: SqliteStatements) -> None:
        self._connection = connection
        self._statements = statements

    def statement(self, name: str, *variants: str) -> str:
        return self._statements.get(name, *variants)

    async def read(self, statement: str, given: Parameters) -> Sequence[ResultRow]:
        [rows] = await self.read_all([statement], given)
        return rows

    async def read_all(self, statements: Sequence[str], given: Parameters) -> Sequence[Sequence[ResultRow]]:
        encoded = _encoded(given)
        return await self._connection.read(lambda db: [db.execute(one, encoded).fetchall() for one in statements])

    async def write(self, statement: str, given: Parameters) -> Sequence[ResultRow]:
        encoded = _encoded(given)
        # Fetched to the end: a statement that is still running would keep the transaction from committing.
        return await self._connection.write(lambda db: db.execute(statement, encoded).fetchall())

    async def transact(self, steps: StatementSteps[T]) -> T:
        def work(db: sqlite3.Connection) -> T:
            try:
                statement, given = next(steps)
                while True:
                    statement, given = steps.send(db.execute(statement, _encoded(given)).fetchall())
            except StopIteration as end:
                returned: T = end.value
                return returned

        return await self._connection.write(work)

    def decode_time(self, value: Any) -> datetime:
        return decode_time(value)


def _encoded(given: Parameters) -> dict[str, Any]:
    return {name: _value(value) for name, value in given.items()}


def _value(value: object) -> Any:
    if isinstance(value, datetime):
        return written(value)
    return json.dumps([_value(one) for one in cast(list[object], value)]) if isinstance(value, list) else value


def written(at: datetime) -> str:
    """A time as the tables have it."""
    return EVER if at == EARLIEST else encode_time(at)
