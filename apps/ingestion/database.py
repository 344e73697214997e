"""The engine of the business tables, and the store of the outbox: two ways into one database."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url

from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore

THREADS = 40
"""Requests at once: as many as FastAPI has threads for, so that none waits for a connection."""
BUSY = "10000"
"""Milliseconds a writer of SQLite waits for the one before it."""


def open_engine(url: str) -> Engine:
    """No connection is made before the first transaction."""
    if url.startswith("sqlite"):
        engine = create_engine(url)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_immediate)
        return engine
    target = make_url(url).set(drivername="postgresql+psycopg")
    return create_engine(
        target, pool_size=10, max_overflow=THREADS - 10, pool_pre_ping=True, connect_args={"connect_timeout": 5}
    )


def open_store(url: str) -> PostgresStore | SqliteStore:
    """What the relay and the health read. No connection is made before it is used."""
    return SqliteStore(url) if url.startswith("sqlite") else PostgresStore(url)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # BEGIN is ours, below
    for pragma in ("journal_mode = WAL", f"busy_timeout = {BUSY}", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_immediate(connection: Connection) -> None:
    """Two transactions that read first and write later would refuse each other; so each writes from its beginning."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")
