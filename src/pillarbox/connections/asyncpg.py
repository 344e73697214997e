"""asyncpg: connections of one's own and those acquired from a pool."""

from __future__ import annotations

from typing import Any

from pillarbox.connections.connection import Operation, Rows, Statement, Steps, T, adrive, guarded
from pillarbox.core.errors import InvalidConnectionError, NotInTransactionError


def guard(connection: Any, *, begins: bool, remedy: str) -> Steps[None]:
    """Raise NotInTransactionError if an INSERT on this connection would commit by itself.

    begins: the caller of this guard opens a transaction for the INSERT.
    """
    yield from ()  # this driver answers without a statement
    if connection.is_closed():
        raise InvalidConnectionError("the asyncpg connection is closed; pass an open one")
    if not begins and not connection.is_in_transaction():
        raise NotInTransactionError(
            "no transaction is open on the asyncpg connection, so the INSERT would commit by itself, "
            f"apart from your own rows; {remedy}"
        )


class AsyncpgConnection:
    """`asyncpg.Connection`, or the proxy that a pool hands out."""

    remedy = "wrap both in `async with connection.transaction():`"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def arun(self, operation: Operation[T]) -> T:
        own = self._own()
        steps = guarded(guard(own, begins=False, remedy=self.remedy), operation, "postgresql")
        return await adrive(steps, self._execute)

    async def _execute(self, statement: Statement) -> Rows:
        rows: Rows = await self._connection.fetch(statement.sql, *statement.parameters)
        return rows

    def _own(self) -> Any:
        """The connection behind a pool's proxy, which says more precisely what is wrong."""
        own = getattr(self._connection, "_con", self._connection)
        if own is None:
            raise InvalidConnectionError(
                "the asyncpg connection went back to its pool; use it before its `async with` block ends"
            )
        return own
