"""The shop's own database: orders and outbox beside each other, written in one transaction or not at all."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.event import Event
from pillarbox.ops.demo.scene import Scene
from pillarbox.ops.demo.verdict import Step
from pillarbox.record.outbox import Outbox
from pillarbox.statements import Names, StatementSet, load

if TYPE_CHECKING:
    import asyncpg

PATIENCE = 30.0


class Change(NamedTuple):
    """An order is to take its next step."""

    order: int
    state: str

    def event(self) -> Event:
        payload = {"order": self.order, "state": self.state}
        return Event(f"order.{self.state}", payload, aggregate_type="ORDER", aggregate_id=str(self.order))


class Declined(Exception):
    """The customer's card was declined after everything had been written: the transaction is rolled back."""


class Books(Protocol):
    """The shop's own database."""

    async def open(self) -> None: ...

    async def write(self, changes: Sequence[Change], *, declined: bool) -> None:
        """Orders and events in one transaction. Raises Declined once it is rolled back."""
        ...

    async def read(self) -> list[Step]:
        """Everything that was committed, in its order."""
        ...

    async def remove(self) -> None:
        """Take away what lies outside the folder of the demo."""
        ...

    async def aclose(self) -> None: ...


def books_of(scene: Scene) -> Books:
    return PostgresBooks(scene.store, scene.name) if scene.store else SqliteBooks(scene.shop_file)


class SqliteBooks:
    """A SQLite file: orders and outbox beside each other."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._outbox = Outbox()
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> None:
        def work() -> None:
            # Whichever thread is free; never two at once.
            self._connection = sqlite3.connect(self._path, timeout=PATIENCE, check_same_thread=False)
            self._connection.execute(self._sql("create_orders"))

        await asyncio.to_thread(work)

    async def write(self, changes: Sequence[Change], *, declined: bool) -> None:
        await asyncio.to_thread(self._write, [(change, change.event()) for change in changes], declined)

    def _write(self, changes: Sequence[tuple[Change, Event]], declined: bool) -> None:
        with self._opened() as connection:
            for change, event in changes:
                connection.execute(self._sql("write_step"), (str(change.order), change.state, event.event_id))
            self._outbox.record(connection, *(event for _, event in changes))
            if declined:
                raise Declined

    async def read(self) -> list[Step]:
        def work() -> list[Step]:
            return [Step._make(row) for row in self._opened().execute(self._sql("read_orders"))]

        return await asyncio.to_thread(work)

    async def remove(self) -> None:
        """The file goes with the folder."""

    async def aclose(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreUnavailableError("the shop is not open")
        return self._connection

    @staticmethod
    def _sql(name: str) -> str:
        return StatementSet(Names(), load("pillarbox.ops.demo", "sqlite"), orders='"orders"').get(name)


class PostgresBooks:
    """A schema of the demo's own in PostgreSQL: orders and outbox beside each other."""

    def __init__(self, url: str, schema: str) -> None:
        self._url = url
        self._names = Names(schema=schema)
        self._outbox = Outbox(schema=schema)
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None

    async def open(self) -> None:
        import asyncpg

        self._connection = await asyncpg.connect(self._url, timeout=PATIENCE)
        await self._connection.execute(self._sql("create_orders"))

    async def write(self, changes: Sequence[Change], *, declined: bool) -> None:
        connection = self._opened()
        events = [change.event() for change in changes]
        async with connection.transaction():
            for change, event in zip(changes, events, strict=True):
                await connection.execute(self._sql("write_step"), str(change.order), change.state, event.event_id)
            await self._outbox.arecord(connection, *events)
            if declined:
                raise Declined

    async def read(self) -> list[Step]:
        return [Step._make(row) for row in await self._opened().fetch(self._sql("read_orders"))]

    async def remove(self) -> None:
        await self._opened().execute(self._sql("remove"))

    async def aclose(self) -> None:
        if self._connection is not None:
            await self._connection.close(timeout=PATIENCE)

    def _opened(self) -> asyncpg.Connection[asyncpg.Record]:
        if self._connection is None:
            raise StoreUnavailableError("the shop is not open")
        return self._connection

    def _sql(self, name: str) -> str:
        orders = self._names.qualified("orders")
        return StatementSet(self._names, load("pillarbox.ops.demo", "postgres"), orders=orders).get(name)
