"""PostgreSQL as an adapter: `postgresql://…`. The driver is imported only when the store is opened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pillarbox.admin.admin import AdminStore
from pillarbox.dialects.postgres import DIALECT
from pillarbox.plugins import Producer, ScratchStore, StoreOptions, StorePlugin

if TYPE_CHECKING:
    from pillarbox.stores.postgres.connection import PostgresStoreConnection
    from pillarbox.stores.postgres.statements import PostgresStatements


class PostgresPlugin(StorePlugin):
    """`postgresql://…`."""

    dialect = "postgres"
    scratch_stores = True

    def open(self, url: str, options: StoreOptions) -> AdminStore:
        from pillarbox.stores.postgres import PostgresStore

        return PostgresStore(
            url,
            tables=options.tables,
            history=options.history,
            ledger=options.ledger,
            max_payload=options.max_payload,
            statement_timeout=options.statement_timeout,
        )

    def producer(self, url: str) -> Producer:
        return _Producer(url)

    def grants(self, url: str, options: StoreOptions, owner: str) -> str:
        from pillarbox.stores.postgres import PostgresStore

        return PostgresStore(url, tables=options.tables).schema.roles_sql(
            producer="pillarbox_producer",
            relay="pillarbox_relay",
            reader="pillarbox_reader",
            migrator="pillarbox_migrator",
            owner=owner,
        )

    def scratch(self, url: str, options: StoreOptions, name: str) -> ScratchStore:
        return _ScratchTables(url, replace(options, tables=replace(options.tables, prefix=f"{name}_outbox_")))


class _ScratchTables:
    """Tables with another prefix in the same schema, which is dropped with them if it did not exist before."""

    def __init__(self, url: str, options: StoreOptions) -> None:
        self.url, self.options = url, options
        self._new_schema = False

    async def existing(self) -> Sequence[str]:
        async with self._connected() as (connection, statements):
            [(schema_exists,)] = await connection.fetch(statements.get("scratch_schema_exists"))
            self._new_schema = not schema_exists
            return [f"table {row[0]}" for row in await connection.fetch(statements.get("scratch_tables"))]

    async def drop(self) -> None:
        async with self._connected() as (connection, statements):
            await connection.execute(statements.get("drop_scratch_tables"))
            if self._new_schema:
                await connection.execute(statements.get("drop_scratch_schema"))

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[tuple[PostgresStoreConnection, PostgresStatements]]:
        from pillarbox.stores.postgres.connection import PostgresStoreConnection
        from pillarbox.stores.postgres.statements import PostgresStatements

        async with aclosing(PostgresStoreConnection(self.url)) as connection:
            yield connection, PostgresStatements(DIALECT.names(self.options.tables))


class _Producer:
    awaited = True

    def __init__(self, url: str) -> None:
        from pillarbox.stores.postgres.connection import PostgresStoreConnection

        # The limits of the tables apply to it, as to any producer.
        self._connection = PostgresStoreConnection(url, internal=False)

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return self._transaction()

    async def aclose(self) -> None:
        await self._connection.aclose()

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Any]:
        async with self._connection.open() as driver, driver.transaction():
            yield driver
