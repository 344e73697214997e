"""Opens the engine of the business tables and the store of the outbox, both on one database."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url

from apps.runtime.mariadb import open_mariadb_engine
from apps.runtime.stores import Store
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore

THREADS = 40
"""Concurrent requests: as many as FastAPI has threads, so that none waits for a connection."""
BUSY_TIMEOUT = "10000"
"""Milliseconds that a writer of SQLite waits for the previous one."""


def open_engine(url: str) -> Engine:
    """The engine connects with its first transaction."""
    if url.startswith("sqlite"):
        engine = create_engine(url)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_immediate)
        return engine
    if url.startswith("mariadb:"):
        return open_mariadb_engine(url, pool_size=10, max_overflow=THREADS - 10, pool_pre_ping=True)
    target = make_url(url).set(drivername="postgresql+psycopg")
    return create_engine(
        target, pool_size=10, max_overflow=THREADS - 10, pool_pre_ping=True, connect_args={"connect_timeout": 5}
    )


def open_store(url: str) -> Store:
    """The store for the relay and `/health`; it connects on first use."""
    if url.startswith("mariadb:"):
        return MariaDBStore(url)
    return SqliteStore(url) if url.startswith("sqlite") else PostgresStore(url)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # _begin_immediate sends BEGIN
    for pragma in ("journal_mode = WAL", f"busy_timeout = {BUSY_TIMEOUT}", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_immediate(connection: Connection) -> None:
    """Start as a writer: two transactions that read first and write later would make each other fail."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")
