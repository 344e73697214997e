"""asyncmy: connections, also those acquired from a pool, and pools."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pillarbox.connections.connection import BoundStatement, Operation, Rows, T, adrive, guarded
from pillarbox.connections.driver import BehindSqlAlchemy, Driver
from pillarbox.connections.drivers.pymysql import guard, guard_behind_sqlalchemy
from pillarbox.connections.placeholders import Style, render
from pillarbox.core.errors import InvalidConnectionError


class AsyncmyConnection:
    """`asyncmy.Connection`."""

    remedy = "call `await connection.begin()` first, or open it without autocommit"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def arun(self, operation: Operation[T]) -> T:
        if not self._connection.connected:
            raise InvalidConnectionError("the asyncmy connection is closed; pass an open one")
        steps = guarded(guard(self._connection, remedy=self.remedy), operation, "mariadb")
        return await adrive(steps, self._execute)

    async def _execute(self, statement: BoundStatement) -> Rows:
        # The plain cursor gives tuples, whichever cursor class the caller chose for the connection.
        async with self._connection.cursor(sys.modules["asyncmy.cursors"].Cursor) as cursor:
            await cursor.execute(render(statement.sql, Style.PERCENT), statement.parameters)
            rows: Rows = await cursor.fetchall() if cursor.description else ()
        return rows


@asynccontextmanager
async def _acquire(pool: Any) -> AsyncIterator[Any]:
    async with pool.acquire() as connection:
        await connection.begin()
        try:
            yield connection
        except Exception:
            await connection.rollback()
            raise
        except BaseException:
            # Cancelled: the driver has closed the connection. The error of a rollback would hide that.
            connection.close()
            raise
        await connection.commit()


DRIVER = Driver(
    accepts="an asyncmy connection",
    async_connections={("asyncmy", "Connection"): AsyncmyConnection},
    async_pools={("asyncmy", "Pool"): _acquire},
    behind_sqlalchemy={
        ("asyncmy", "Connection"): BehindSqlAlchemy("mariadb", Style.PERCENT, guard_behind_sqlalchemy, "mysql+asyncmy")
    },
    remedies={
        ("asyncmy", "Cursor"): "pass the cursor's `.connection`",
        ("asyncmy", "Pool"): "pass the connection of `async with pool.acquire() as connection:`",
    },
)
