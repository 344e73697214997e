"""Opens the database of the application and migrates its tables.

One URL serves all processes: `postgresql://…`, `mariadb://…` or `sqlite:///…`. Invariant: on SQLite every transaction
begins as a writer, so that concurrent transactions wait for each other instead of failing.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import aclosing
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, OperationalError

from apps.runtime.mariadb import DRIVER, open_mariadb_engine
from apps.runtime.stores import Store
from pillarbox import ConfigurationError, StoreUnavailableError, TableNames
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore

MIGRATIONS = Path(__file__).parent / "migrations"
DRIVERS = {"postgresql": "postgresql+psycopg", "mariadb": DRIVER, "sqlite": "sqlite"}
BUSY_SECONDS = 30
EVENT_TABLES = TableNames()
DELIVERY_TABLES = TableNames(prefix="delivery_")
"""The prefix of the outbox of deliveries; business events are in the default one."""


def open_engine(url: str, *, pool_size: int = 10) -> Engine:
    """Create an engine, which connects on first use. Dispose of it. Raises ConfigurationError for an invalid URL."""
    try:
        parsed = make_url(url)
        driver = DRIVERS[parsed.drivername]
    except (ArgumentError, KeyError):
        raise ConfigurationError(
            "the database's URL must begin with postgresql://, mariadb:// or sqlite:///, for example "
            "sqlite:///notifications.db"
        ) from None
    if driver == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise ConfigurationError("the database's URL names no file; write for example sqlite:///notifications.db")
    if driver == DRIVER:
        return open_mariadb_engine(parsed, pool_size=pool_size)
    engine = create_engine(parsed.set(drivername=driver), pool_size=pool_size)
    if driver == "sqlite":
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_immediate)
    return engine


def url_of(engine: Engine) -> str:
    """The URL that such an engine was opened with."""
    return engine.url.set(drivername=engine.url.get_backend_name()).render_as_string(hide_password=False)


def open_store(url: str, *, tables: TableNames = EVENT_TABLES, ledger: bool = False) -> Store:
    """The store of the outbox with that prefix. Raises ConfigurationError for an invalid URL."""
    if url.startswith("sqlite:"):
        return SqliteStore(url, tables=tables, ledger=ledger)
    if url.startswith("mariadb:"):
        return MariaDBStore(url, tables=tables, ledger=ledger)
    return PostgresStore(url, tables=tables, ledger=ledger)


def migrate(url: str) -> None:
    """Create or upgrade the tables: the application's own by Alembic, those of both outboxes by the library.

    Idempotent, also when several processes call it at once. MariaDB commits every statement of a migration: if it is
    interrupted there, call it again. In a running event loop, call
    `await asyncio.to_thread(migrate, url)`. Raises StoreUnavailableError if there is no such database.
    """
    # Imported here, because only one of the processes migrates.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    engine = open_engine(url)
    try:
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except OperationalError as error:
        raise StoreUnavailableError(f"the database cannot be used: {str(error.orig).splitlines()[0]}") from error
    finally:
        engine.dispose()
    asyncio.run(_apply_outboxes(url))


async def _apply_outboxes(url: str) -> None:
    for tables in (EVENT_TABLES, DELIVERY_TABLES):
        async with aclosing(open_store(url, tables=tables)) as store:
            # Other producers insert into the compatibility view `event_outbox`, which MariaDB cannot have.
            await store.schema.apply(aliases=tables == EVENT_TABLES and not isinstance(store, MariaDBStore))


def _configure_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # the driver would begin as a reader; _begin_immediate sends BEGIN
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
