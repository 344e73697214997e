"""The database of the order service: it writes orders and their events in one transaction."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.event import Event
from pillarbox.ops.demo.environment import DemoEnvironment
from pillarbox.ops.demo.verification import OrderStep
from pillarbox.record.outbox import Outbox
from pillarbox.statements import Names, StatementSet, load_statements
from pillarbox.table_names import TableNames

if TYPE_CHECKING:
    import asyncpg

TIMEOUT = 30.0
"""Seconds to wait for a connection or a lock."""


class OrderChange(NamedTuple):
    """The next state of an order."""

    order: int
    state: str

    def event(self) -> Event:
        payload = {"order": self.order, "state": self.state}
        return Event(f"order.{self.state}", payload, aggregate_type="ORDER", aggregate_id=str(self.order))


class PaymentDeclined(Exception):
    """Raised after all writes, so that the transaction is rolled back."""


class OrderDatabase(Protocol):
    """Stores the orders of the demo."""

    async def open(self) -> None: ...

    async def write(self, changes: Sequence[OrderChange], *, declined: bool) -> None:
        """Write orders and events in one transaction. Raises PaymentDeclined after the rollback."""
        ...

    async def read(self) -> list[OrderStep]:
        """Return all committed steps in commit order."""
        ...

    async def remove(self) -> None:
        """Delete what is outside the folder of the demo."""
        ...

    async def aclose(self) -> None: ...


def order_database(environment: DemoEnvironment) -> OrderDatabase:
    """Return the database of this environment, not yet opened."""
    if environment.store:
        return PostgresOrders(environment.store, environment.name)
    return SqliteOrders(environment.database_file)


class SqliteOrders:
    """Orders and outbox in one SQLite file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._outbox = Outbox()
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> None:
        def work() -> None:
            # Calls run on any thread of the pool, one at a time.
            self._connection = sqlite3.connect(self._path, timeout=TIMEOUT, check_same_thread=False)
            self._connection.execute(self._sql("create_orders"))

        await asyncio.to_thread(work)

    async def write(self, changes: Sequence[OrderChange], *, declined: bool) -> None:
        await asyncio.to_thread(self._write, [(change, change.event()) for change in changes], declined)

    def _write(self, changes: Sequence[tuple[OrderChange, Event]], declined: bool) -> None:
        with self._opened() as connection:
            for change, event in changes:
                connection.execute(self._sql("write_step"), (str(change.order), change.state, event.event_id))
            self._outbox.record(connection, *(event for _, event in changes))
            if declined:
                raise PaymentDeclined

    async def read(self) -> list[OrderStep]:
        def work() -> list[OrderStep]:
            return [OrderStep._make(row) for row in self._opened().execute(self._sql("read_orders"))]

        return await asyncio.to_thread(work)

    async def remove(self) -> None:
        """Do nothing: the file is in the folder of the demo."""

    async def aclose(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreUnavailableError("the database of the demo is not open")
        return self._connection

    @staticmethod
    def _sql(name: str) -> str:
        return StatementSet(Names(), load_statements("pillarbox.ops.demo", "sqlite"), orders='"orders"').get(name)


class PostgresOrders:
    """Orders and outbox in one schema of PostgreSQL, which the demo creates."""

    def __init__(self, url: str, schema: str) -> None:
        self._url = url
        self._names = Names(schema=schema)
        self._outbox = Outbox(tables=TableNames(schema=schema))
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None

    async def open(self) -> None:
        import asyncpg

        self._connection = await asyncpg.connect(self._url, timeout=TIMEOUT)
        await self._connection.execute(self._sql("create_orders"))

    async def write(self, changes: Sequence[OrderChange], *, declined: bool) -> None:
        connection = self._opened()
        events = [change.event() for change in changes]
        async with connection.transaction():
            for change, event in zip(changes, events, strict=True):
                await connection.execute(self._sql("write_step"), str(change.order), change.state, event.event_id)
            await self._outbox.arecord(connection, *events)
            if declined:
                raise PaymentDeclined

    async def read(self) -> list[OrderStep]:
        return [OrderStep._make(row) for row in await self._opened().fetch(self._sql("read_orders"))]

    async def remove(self) -> None:
        await self._opened().execute(self._sql("remove"))

    async def aclose(self) -> None:
        if self._connection is not None:
            await self._connection.close(timeout=TIMEOUT)

    def _opened(self) -> asyncpg.Connection[asyncpg.Record]:
        if self._connection is None:
            raise StoreUnavailableError("the database of the demo is not open")
        return self._connection

    def _sql(self, name: str) -> str:
        orders = self._names.qualified("orders")
        return StatementSet(self._names, load_statements("pillarbox.ops.demo", "postgres"), orders=orders).get(name)
