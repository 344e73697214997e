"""Errors of admission have a reason and advice; other errors of the driver are raised unchanged."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine

from pillarbox import Inbox, InboxError, InvalidConnectionError, SchemaError, TableNames
from pillarbox.core.statistics import ConsumerStatistics
from tests.integration.inbox.admitting import admit
from tests.integration.inbox.conftest import committed_records
from tests.integration.record.test_roles import Role
from tests.integration.record.way import Way
from tests.integration.record.ways import POSTGRES, SQLITE


@pytest.fixture
def role(postgres_url: str) -> Iterator[Role]:
    role = Role(postgres_url)
    yield role
    role.drop()


@pytest.mark.parametrize("way", POSTGRES, ids=str)
async def test_an_empty_postgres_is_an_error_with_advice(way: Way, empty_postgres_url: str) -> None:
    with pytest.raises(SchemaError, match="pillarbox schema apply"):
        async with way.transaction(empty_postgres_url) as connection:
            await admit(way, connection, "e1")


@pytest.mark.parametrize("way", SQLITE, ids=str)
async def test_an_empty_sqlite_is_an_error_with_advice(way: Way, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="pillarbox schema apply"):
        async with way.transaction(str(tmp_path / "empty.db")) as connection:
            await admit(way, connection, "e1")


@pytest.mark.parametrize("way", POSTGRES, ids=str)
async def test_a_failed_transaction_must_be_rolled_back_first(way: Way, postgres_url: str) -> None:
    with pytest.raises(InboxError, match=r"has already failed.*roll back first"):
        async with way.transaction(postgres_url) as connection:
            with pytest.raises(SchemaError, match="not_there"):
                await admit(way, connection, "e1", inbox=Inbox(tables=TableNames(schema="not_there")))
            await admit(way, connection, "e1")
    assert committed_records(postgres_url) == []


def test_an_invalid_connection_is_rejected_with_advice() -> None:
    with pytest.raises(
        InvalidConnectionError, match=r"builtins\.object is not a transaction to work in; pass .*a SQLAlchemy Session"
    ):
        Inbox().admit(object(), "billing", "e1")  # type: ignore[arg-type] # as a caller without a type checker
    with pytest.raises(InvalidConnectionError, match=r"with engine\.begin\(\) as connection"):
        Inbox().admit(create_engine("sqlite://"), "billing", "e1")  # type: ignore[arg-type] # likewise


async def test_the_insert_privilege_is_enough(postgres_url: str, role: Role) -> None:
    role.grant("INSERT ON outbox_inbox")
    for first in (True, False):
        with psycopg.connect(role.url) as connection:
            assert Inbox().admit(connection, "billing", "e1") is first
    assert committed_records(postgres_url) == [("billing", "e1")]


def test_insert_and_select_are_allowed(postgres_url: str, role: Role) -> None:
    role.grant("INSERT, SELECT ON outbox_inbox")
    for first in (True, False):
        with psycopg.connect(role.url) as connection:
            assert Inbox().admit(connection, "billing", "e1") is first


async def test_a_missing_insert_privilege_is_named(role: Role) -> None:
    connection = await asyncpg.connect(role.url)
    with pytest.raises(InboxError, match=r'GRANT INSERT ON "public"\."outbox_inbox"') as caught:
        async with connection.transaction():
            await Inbox().aadmit(connection, "billing", "e1")
    assert isinstance(caught.value.__cause__, asyncpg.InsufficientPrivilegeError)
    await connection.close()


def test_a_missing_statistics_privilege_is_named(role: Role) -> None:
    needed = "SELECT, INSERT, UPDATE ON"
    refused = pytest.raises(
        InboxError,
        match=rf'permission to write consumer statistics .*; GRANT {needed} "public"\."outbox_inbox_statistics"',
    )
    with refused, psycopg.connect(role.url) as connection:
        Inbox().add_statistics(connection, ConsumerStatistics("billing", processed=1))
    role.grant(f"{needed} outbox_inbox_statistics")
    for _ in range(2):
        with psycopg.connect(role.url) as connection:
            Inbox().add_statistics(connection, ConsumerStatistics("billing", processed=1))


def test_a_busy_error_of_sqlite_is_raised_unchanged(sqlite_path: str) -> None:
    with (
        closing(sqlite3.connect(sqlite_path)) as holder,
        closing(sqlite3.connect(sqlite_path, timeout=0)) as connection,
    ):
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            Inbox().admit(connection, "billing", "e1")


def test_a_lost_connection_is_raised_unchanged(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection, psycopg.connect(postgres_url) as other:
        connection.execute("SELECT 1")
        other.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))
        with pytest.raises(psycopg.OperationalError):
            Inbox().admit(connection, "billing", "e1")
