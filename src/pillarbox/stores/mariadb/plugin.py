"""MariaDB as an adapter: `mariadb://…` and `mysql://…`. The driver is imported only when the store is opened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pillarbox.admin.admin import AdminStore
from pillarbox.core.errors import ConfigurationError
from pillarbox.dialects.mariadb import DIALECT
from pillarbox.plugins import Producer, ScratchStore, StoreOptions, StorePlugin

if TYPE_CHECKING:
    from pillarbox.stores.mariadb.connection import MariaDBStoreConnection
    from pillarbox.stores.mariadb.statements import MariaDBStatements


class MariaDBPlugin(StorePlugin):
    """`mariadb://…`."""

    dialect = "mariadb"
    ignored = ("schema",)
    scratch_stores = True

    def open(self, url: str, options: StoreOptions) -> AdminStore:
        from pillarbox.stores.mariadb import MariaDBStore

        return MariaDBStore(
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
        raise ConfigurationError(
            "--roles: the grants of mariadb:// are not written by a command; docs/reference/mariadb.md has them"
        )

    def scratch(self, url: str, options: StoreOptions, name: str) -> ScratchStore:
        return _ScratchTables(url, replace(options, tables=replace(options.tables, prefix=f"{name}_outbox_")))


class _ScratchTables:
    """Tables with another prefix in the same database."""

    def __init__(self, url: str, options: StoreOptions) -> None:
        self.url, self.options = url, options

    async def existing(self) -> Sequence[str]:
        async with self._connected() as (connection, statements):
            return [f"table {name}" for name, _ in await connection.fetch(statements.get("schema_tables"))]

    async def drop(self) -> None:
        async with self._connected() as (connection, statements):
            for name, engine in await connection.fetch(statements.get("schema_tables")):
                kind = "TABLE" if engine else "VIEW"
                await connection.run(statements.get("drop_scratch_tables", kind=kind, name=name))

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[tuple[MariaDBStoreConnection, MariaDBStatements]]:
        from pillarbox.stores.mariadb.connection import MariaDBStoreConnection
        from pillarbox.stores.mariadb.statements import MariaDBStatements

        async with aclosing(MariaDBStoreConnection(self.url)) as connection:
            yield connection, MariaDBStatements(DIALECT.names(self.options.tables))


class _Producer:
    awaited = True

    def __init__(self, url: str) -> None:
        from pillarbox.stores.mariadb.connection import MariaDBStoreConnection

        self._connection = MariaDBStoreConnection(url)

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return self._transaction()

    async def aclose(self) -> None:
        await self._connection.aclose()

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Any]:
        async with self._connection.open() as driver:
            await driver.begin()
            try:
                yield driver
            except Exception:
                await driver.rollback()
                raise
            except BaseException:
                # Cancelled: the driver has closed the connection. The error of a rollback would hide that.
                driver.close()
                raise
            await driver.commit()
