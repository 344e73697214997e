"""asyncmy: connections, also those acquired from a pool, and pools."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pillarbox.connections.connection import BoundStatement, Operation, Rows, Steps, T, adrive, guarded
from pillarbox.connections.driver import BehindSqlAlchemy, Driver
from pillarbox.connections.drivers import pymysql
from pillarbox.connections.placeholders import Style, render
from pillarbox.core.errors import InvalidConnectionError

# SERVER_STATUS_NO_BACKSLASH_ESCAPES of the protocol.
_NO_BACKSLASH_ESCAPES = 512


def guard(connection: Any, *, remedy: str) -> Steps[None]:
    """As for PyMySQL. Raise InvalidConnectionError in a mode in which asyncmy writes bytes wrongly: it escapes with
    backslashes, which the server would store, and a quote in a payload would end it."""
    if connection.server_status & _NO_BACKSLASH_ESCAPES:
        raise InvalidConnectionError(
            "the sql_mode of the asyncmy connection has NO_BACKSLASH_ESCAPES, with which asyncmy does not escape bytes "
            "correctly; remove it from the mode of this session, or use PyMySQL or mysqlclient"
        )
    return pymysql.guard(connection, remedy=remedy)


def guard_behind_sqlalchemy(connection: Any, _adapter: Any, remedy: str) -> Steps[None]:
    """`guard` for SQLAlchemy, which opens a transaction by switching autocommit off."""
    return guard(connection, remedy=remedy)


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
