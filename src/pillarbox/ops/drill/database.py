"""The drill's own tables: numbers of transactions, and effects. They are beside the outbox, and dropped with it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from typing import Any

from pillarbox import connections, dialects, schemes
from pillarbox.connections import BoundStatement, Rows, Steps
from pillarbox.inbox.transactions import Transactions
from pillarbox.ops.drill.target import DrillTarget
from pillarbox.ops.importing import installed
from pillarbox.plugins import Producer
from pillarbox.statements import StatementSet, load_statements
from pillarbox.stores.sqlite.store import path_of

CONCURRENCY = 10
"""Connections of a consumer."""
LOCK_TIMEOUT = 0.5
"""Seconds after which a SQLite file counts as locked by a frozen process; less than its lease."""
BUSY_TIMEOUT = 30.0
"""Seconds that a consumer on SQLite waits for other writers."""


class DrillTables:
    """The drill's own statements, for any connection to the store."""

    def __init__(self, target: DrillTarget) -> None:
        self._url = target.settings.store.url
        self._plugin = schemes.store_plugin(schemes.scheme_of(self._url))
        self._of_thread = threading.local()
        tables = target.settings.store.tables
        names = dialects.find(self._plugin.dialect).names(tables)
        self._statements = StatementSet(
            names,
            load_statements("pillarbox.ops.drill", self._plugin.dialect),
            transactions=names.qualified(f"{names.prefix}drill_transaction"),
            effects=names.qualified(f"{names.prefix}drill_effect"),
        )

    @property
    def dialect(self) -> str:
        return self._plugin.dialect

    def producer(self) -> Producer:
        """Open a connection of its own. Raises ConfigurationError."""
        with installed():
            return self._plugin.producer(self._url)

    def run(self, connection: Any, name: str, *parameters: object) -> Rows:
        """Run a statement on a blocking connection, in its transaction."""
        return connections.run(connection, lambda _: self._steps(name, parameters), instead="arun")

    async def arun(self, connection: Any, name: str, *parameters: object) -> Rows:
        """`run`, awaited, for the connections of any producer."""
        if isinstance(connection, sqlite3.Connection):
            return self.run(connection, name, *parameters)
        return await connections.arun(connection, lambda _: self._steps(name, parameters), instead="run")

    async def create(self) -> None:
        """Create the tables. Raises StoreUnavailableError."""
        for statement in ("create_transactions", "create_effects"):
            await self.read(statement)  # each in its own transaction, because MariaDB commits after each

    async def committed(self) -> set[str]:
        """Return the numbers of all transactions in the database."""
        return {str(row[0]) for row in await self.read("read_transactions")}

    async def effects(self) -> Mapping[str, int]:
        """Return how often the effect of each event was applied."""
        return {str(event_id): int(count) for event_id, count in await self.read("count_effects")}

    async def read(self, name: str, *parameters: object) -> Rows:
        """Run a statement in a transaction of its own. Raises StoreUnavailableError."""
        async with aclosing(self.producer()) as producer, producer.transaction() as connection:
            return await self.arun(connection, name, *parameters)

    async def is_locked(self) -> bool:
        """Whether a process locks out all other writers for longer than a transaction takes; only on SQLite."""
        return self.dialect == "sqlite" and await asyncio.to_thread(self._is_file_locked)

    def _is_file_locked(self) -> bool:
        with closing(sqlite3.connect(path_of(self._url), timeout=LOCK_TIMEOUT, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            connection.execute("ROLLBACK")
            return False

    def consumer_transactions(self) -> Transactions:
        """Open the transactions of a consumer, several at a time where the driver is awaited."""
        if not self.producer().awaited:
            return self._blocking_transaction
        idle: asyncio.Queue[Producer] = asyncio.Queue()
        for _ in range(CONCURRENCY):
            idle.put_nowait(self.producer())

        @asynccontextmanager
        async def transaction() -> AsyncIterator[Any]:
            producer = await idle.get()
            try:
                async with producer.transaction() as connection:
                    yield connection
            finally:
                idle.put_nowait(producer)

        return transaction

    @contextmanager
    def _blocking_transaction(self) -> Iterator[sqlite3.Connection]:
        """On a connection of the thread: opening one takes longer than the transaction."""
        if (connection := getattr(self._of_thread, "connection", None)) is None:
            path = path_of(self._url)
            connection = self._of_thread.connection = sqlite3.connect(
                path, timeout=BUSY_TIMEOUT, isolation_level="IMMEDIATE"
            )
        with connection:
            yield connection

    def _steps(self, name: str, parameters: tuple[object, ...]) -> Steps[Rows]:
        return (yield BoundStatement(self._statements.get(name), parameters))
