"""The table is found by prefix and schema with any connection settings, and behind a pooler."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest
from psycopg.rows import dict_row, scalar_row

from pillarbox import Inbox, NotInTransactionError, TableNames
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from tests.integration.inbox.admitting import Undo
from tests.integration.inbox.conftest import committed_records
from tests.servers.pgbouncer import PgBouncer

INBOX = Inbox()
TILL = TableNames(schema="shop", prefix="till_outbox_")


async def test_schema_and_prefix_can_be_set(postgres_url: str) -> None:
    async with aclosing(PostgresStore(postgres_url, tables=TILL)) as store:
        await store.schema.apply()
    with psycopg.connect(postgres_url) as connection:
        assert Inbox(tables=TILL).admit(connection, "billing", "e1")
        assert not Inbox(tables=TILL).admit(connection, "billing", "e1")
        assert connection.execute("SELECT event_id FROM shop.till_outbox_inbox").fetchall() == [("e1",)]
    assert committed_records(postgres_url) == []


async def test_the_search_path_does_not_matter(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SET LOCAL search_path TO pg_temp")
        assert INBOX.admit(connection, "billing", "e1")
    assert committed_records(postgres_url) == [("billing", "e1")]


async def test_on_sqlite_only_the_prefix_applies(tmp_path: Path) -> None:
    async with aclosing(SqliteStore(tmp_path / "shop.db", tables=TableNames(prefix="shop_"))) as store:
        await store.schema.apply()
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        assert Inbox(tables=TableNames(prefix="shop_", schema="elsewhere")).admit(connection, "billing", "e1")
        assert connection.execute("SELECT event_id FROM shop_inbox").fetchall() == [("e1",)]


@pytest.mark.parametrize(
    "options",
    [{"row_factory": dict_row}, {"row_factory": scalar_row}, {"cursor_factory": psycopg.RawCursor}],
    ids=["dict_row", "scalar_row", "RawCursor"],
)
def test_any_row_and_cursor_factory_of_psycopg_works(postgres_url: str, options: Any) -> None:
    with psycopg.connect(postgres_url, **options) as connection:
        assert INBOX.admit(connection, "billing", "e1")
        assert not INBOX.admit(connection, "billing", "e1")


def test_admit_works_in_a_pipeline(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection, connection.pipeline():
        with connection.transaction():
            connection.execute("SELECT 1")
            assert INBOX.admit(connection, "billing", "e1")
            assert not INBOX.admit(connection, "billing", "e1")
        with pytest.raises(NotInTransactionError):
            INBOX.admit(connection, "billing", "e2")
    assert committed_records(postgres_url) == [("billing", "e1")]


@pytest.fixture
def pooled_url(pgbouncer: PgBouncer, postgres_url: str) -> str:
    """The test's own database, through a pooler in transaction mode."""
    return pgbouncer.url(urlsplit(postgres_url).path.removeprefix("/"))


@pytest.fixture
async def pooled(pooled_url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(pooled_url, statement_cache_size=0)
    yield connection
    await connection.close()


async def test_asyncpg_works_behind_a_pooler(postgres_url: str, pooled: Any) -> None:
    for repeat in range(5):
        async with pooled.transaction():
            assert await INBOX.aadmit(pooled, "billing", "e1") is (repeat == 0)
    with pytest.raises(Undo):
        async with pooled.transaction():
            assert await INBOX.aadmit(pooled, "billing", "e2")
            raise Undo
    assert committed_records(postgres_url) == [("billing", "e1")]


def test_psycopg_works_behind_a_pooler(postgres_url: str, pooled_url: str) -> None:
    for repeat in range(5):
        with psycopg.connect(pooled_url, prepare_threshold=None) as connection:
            assert INBOX.admit(connection, "billing", "e1") is (repeat == 0)
    with psycopg.connect(pooled_url, autocommit=True) as connection, pytest.raises(NotInTransactionError):
        INBOX.admit(connection, "billing", "e2")
    assert committed_records(postgres_url) == [("billing", "e1")]
