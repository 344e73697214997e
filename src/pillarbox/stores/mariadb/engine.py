"""MariaDB under the operators' half."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pillarbox.stores.admin.engine import Parameters, ResultRow, StatementSteps, T
from pillarbox.stores.mariadb.connection import MariaDBStoreConnection, Step, Steps
from pillarbox.stores.mariadb.driver import Result
from pillarbox.stores.mariadb.statements import MariaDBStatements


class MariaDBEngine:
    """See `pillarbox.stores.admin.engine.Engine`."""

    def __init__(self, connection: MariaDBStoreConnection, statements: MariaDBStatements) -> None:
        self._connection = connection
        self._statements = statements

    def statement(self, name: str, *variants: str) -> str:
        return self._statements.get(name, *variants)

    async def read(self, statement: str, given: Parameters) -> Sequence[ResultRow]:
        return await self._connection.fetch(statement, given)

    async def read_all(self, statements: Sequence[str], given: Parameters) -> Sequence[Sequence[ResultRow]]:
        def steps() -> Steps[list[Sequence[ResultRow]]]:
            found: list[Sequence[ResultRow]] = []
            for statement in statements:
                found.append((yield statement, given).rows)
            return found

        return await self._connection.snapshot(steps())

    async def write(self, statement: str, given: Parameters) -> Sequence[ResultRow]:
        return _rows(await self._connection.run(statement, given))

    async def transact(self, steps: StatementSteps[T]) -> T:
        return await self._connection.transact(_sent(steps))

    def decode_time(self, value: Any) -> datetime:
        decoded: datetime = value
        return decoded


def _rows(result: Result) -> Sequence[ResultRow]:
    """The rows of a write. A DELETE with a join returns none: callers count them, so there are as many empty ones."""
    return result.rows or [()] * max(result.affected, 0)


def _sent(steps: StatementSteps[T]) -> Steps[T]:
    try:
        step: Step = next(steps)
        while True:
            step = steps.send(_rows((yield step)))
    except StopIteration as end:
        returned: T = end.value
        return returned
