"""PostgreSQL under the operators' half: named parameters become numbered ones."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from datetime import datetime
from typing import Any

from pillarbox.stores.admin.engine import Parameters, ResultRow, StatementSteps, T
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.stores.postgres.statements import PostgresStatements, numbered


class PostgresEngine:
    """See `pillarbox.stores.admin.engine.Engine`."""

    def __init__(self, connection: PostgresStoreConnection, statements: PostgresStatements) -> None:
        self._connection = connection
        self._statements = statements

    def statement(self, name: str, *variants: str) -> str:
        return self._statements.get(name, *variants)

    async def read(self, statement: str, given: Parameters) -> Sequence[ResultRow]:
        return [tuple(row) for row in await self._connection.fetch(*_sent(statement, given))]

    async def read_all(self, statements: Sequence[str], given: Parameters) -> Sequence[Sequence[ResultRow]]:
        return [await self.read(statement, given) for statement in statements]

    async def write(self, statement: str, given: Parameters) -> Sequence[ResultRow]:
        return await self.read(statement, given)

    async def transact(self, steps: StatementSteps[T]) -> T:
        return await self._connection.transact(_sent_steps(steps))

    def decode_time(self, value: Any) -> datetime:
        decoded: datetime = value
        return decoded


def _sent(statement: str, given: Parameters) -> tuple[Any, ...]:
    """Return the statement with numbered parameters, then the parameters."""
    sql, names = numbered(statement)
    return sql, *(given[name] for name in names)


def _sent_steps(steps: StatementSteps[T]) -> Generator[tuple[Any, ...], Sequence[ResultRow], T]:
    try:
        step = next(steps)
        while True:
            step = steps.send((yield _sent(*step)))
    except StopIteration as end:
        returned: T = end.value
        return returned
