"""Objects other than an open transaction are rejected with advice."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any

import asyncpg
import psycopg
import psycopg2
import psycopg2.extras
import pytest
from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine

from pillarbox import Event, NotInTransactionError, Outbox, RecordError, TableNames
from tests.integration.record.conftest import committed_ids
from tests.integration.record.sqlalchemy_ways import async_engine_for, engine_for
from tests.integration.record.way import Way
from tests.integration.record.ways import POSTGRES

pytestmark = pytest.mark.sqlalchemy

EVENT = Event("order.placed", {"id": 1}, event_id="evt-001")


@pytest.fixture
def engine(postgres_url: str) -> Iterator[Engine]:
    with engine_for(postgres_url, "psycopg") as engine:
        yield engine


@pytest.fixture
async def async_engine(postgres_url: str) -> AsyncIterator[AsyncEngine]:
    async with async_engine_for(postgres_url, "asyncpg") as engine:
        yield engine


def _refused(connection: Any, next_step: str) -> None:
    with pytest.raises(RecordError, match=next_step) as caught:
        Outbox().record(connection, EVENT)
    assert caught.value.field == "connection"


async def _refused_awaited(connection: Any, next_step: str) -> None:
    with pytest.raises(RecordError, match=next_step) as caught:
        await Outbox().arecord(connection, EVENT)
    assert caught.value.field == "connection"


async def test_an_unknown_object_is_rejected_with_the_accepted_types() -> None:
    _refused(object(), r"builtins\.object is not a transaction .* SQLAlchemy Session.*sqlite3\.Connection")
    await _refused_awaited(None, r"asyncpg connection")


def test_a_cursor_is_rejected_with_advice(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection, connection.cursor() as cursor:
        _refused(cursor, r"the cursor's `\.connection`")
    with closing(psycopg2.connect(postgres_url)) as psycopg2_connection, psycopg2_connection.cursor() as cursor2:
        _refused(cursor2, r"the cursor's `\.connection`")
    with closing(sqlite3.connect(":memory:")) as sqlite, closing(sqlite.cursor()) as sqlite_cursor:
        _refused(sqlite_cursor, r"the cursor's `\.connection`")


def test_an_asynchronous_psycopg2_connection_is_rejected(postgres_url: str) -> None:
    with closing(psycopg2.connect(postgres_url, async_=True)) as connection:
        psycopg2.extras.wait_select(connection)
        _refused(connection, r"opened without async_")


async def test_a_closed_connection_is_rejected(postgres_url: str, engine: Engine, async_engine: AsyncEngine) -> None:
    with psycopg.connect(postgres_url) as connection:
        pass
    _refused(connection, "closed")
    with closing(psycopg2.connect(postgres_url)) as psycopg2_connection:
        pass
    _refused(psycopg2_connection, "closed")
    with closing(sqlite3.connect(":memory:")) as sqlite:
        pass
    _refused(sqlite, "closed")
    with engine.connect() as alchemy:
        pass
    _refused(alchemy, "closed")
    own = await asyncpg.connect(postgres_url)
    await own.close()
    await _refused_awaited(own, "closed")
    await _refused_awaited(async_engine.connect(), r"async with engine\.begin\(\)")


async def test_a_connection_returned_to_its_pool_is_rejected(postgres_url: str) -> None:
    async with asyncpg.create_pool(postgres_url, min_size=0, max_size=1) as pool:
        async with pool.acquire() as connection:
            pass
        await _refused_awaited(connection, "went back to its pool")


@pytest.mark.parametrize("way", POSTGRES, ids=str)
async def test_a_failed_transaction_must_be_rolled_back_first(way: Way, postgres_url: str) -> None:
    poisoned = Outbox(tables=TableNames(schema="not_there"))
    with pytest.raises(RecordError, match=r"has already failed.*roll back first"):
        async with way.transaction(postgres_url) as connection:
            with pytest.raises(Exception, match="pillarbox schema apply"):
                await way.record(poisoned, connection, EVENT)
            await way.record(Outbox(), connection, EVENT)
    assert committed_ids(postgres_url) == []


def test_a_connection_rejected_for_autocommit_can_begin_afterwards(postgres_url: str) -> None:
    with engine_for(postgres_url, "psycopg") as engine, engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        with pytest.raises(NotInTransactionError):
            Outbox().record(connection, EVENT)
        connection.execution_options(isolation_level="READ COMMITTED")
        with connection.begin():
            Outbox().record(connection, EVENT)
    assert committed_ids(postgres_url) == ["evt-001"]
