"""Databases for tests: one template with the tables in it, cloned in milliseconds for every test that asks."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TypeAlias

import asyncpg

from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from tests.servers.mariadb import MariaDBServer
from tests.servers.postgres import PostgresServer

# Generic for the type checker only.
Sql: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

TEMPLATE = "pillarbox_template"
_numbers = count(1)


async def make_template(server: PostgresServer) -> str:
    """The name of a database with tables and alias views, to be cloned and never used itself."""
    server.create_database(TEMPLATE)
    store = PostgresStore(server.url(TEMPLATE))
    await store.schema.apply(aliases=True)
    await store.aclose()
    return TEMPLATE


async def make_sqlite_template(path: Path) -> None:
    """A file with tables, to be copied and never used itself."""
    store = SqliteStore(path)
    await store.schema.apply()
    await store.aclose()


@contextmanager
def cloned(server: PostgresServer, template: str | None) -> Iterator[str]:
    """The URL of a database of one's own: a clone of `template`, or empty."""
    name = f"test_{next(_numbers)}"
    server.create_database(name, template=template)
    try:
        yield server.url(name)
    finally:
        server.drop_database(name)


@contextmanager
def mariadb_database(server: MariaDBServer) -> Iterator[str]:
    """The URL of an empty database of one's own."""
    name = f"test_{next(_numbers)}"
    server.create_database(name)
    try:
        yield server.url(name)
    finally:
        server.drop_database(name)


async def make_mariadb_tables(url: str) -> None:
    """The tables of the current schema: MariaDB cannot clone a database, but makes them in 30 ms."""
    store = MariaDBStore(url)
    await store.schema.apply()
    await store.aclose()
