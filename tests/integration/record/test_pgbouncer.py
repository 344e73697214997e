"""Recording works behind a pooler in transaction mode."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import psycopg
import pytest
from sqlalchemy import NullPool
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from pillarbox import Event, NotInTransactionError, Outbox
from tests.integration.record.conftest import committed_ids
from tests.integration.record.sqlalchemy_ways import async_engine_for, engine_for
from tests.servers.pgbouncer import PgBouncer

pytestmark = pytest.mark.sqlalchemy

EVENT = Event("order.placed", {"id": 1}, event_id="evt-001")
OUTBOX = Outbox(strict_order=True)


class Undo(Exception):
    pass


@asynccontextmanager
async def _psycopg(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url, prepare_threshold=None) as connection:
        yield connection


@asynccontextmanager
async def _asyncpg(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url, statement_cache_size=0)
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def _sqlalchemy_asyncpg(url: str) -> AsyncIterator[Any]:
    arguments = {"statement_cache_size": 0, "prepared_statement_name_func": lambda: f"__asyncpg_{uuid4()}__"}
    async with (
        async_engine_for(url, "asyncpg", poolclass=NullPool, connect_args=arguments) as engine,
        AsyncSession(engine) as session,
        session.begin(),
    ):
        yield session


@pytest.fixture
def pooled_url(pgbouncer: PgBouncer, postgres_url: str) -> str:
    """The test's own database, through the pooler."""
    return pgbouncer.url(urlsplit(postgres_url).path.removeprefix("/"))


awaited = pytest.mark.parametrize("transaction", [_psycopg, _asyncpg, _sqlalchemy_asyncpg])
Open = Callable[[str], AbstractAsyncContextManager[Any]]


@awaited
async def test_records_commit_repeatedly(pooled_url: str, postgres_url: str, transaction: Open) -> None:
    ids = [f"evt-{number}" for number in range(5)]
    for event_id in ids:
        async with transaction(pooled_url) as connection:
            await OUTBOX.arecord(connection, Event("order.placed", {}, event_id=event_id, key="one"))
    assert committed_ids(postgres_url) == ids


@awaited
async def test_a_rollback_discards_the_event(pooled_url: str, postgres_url: str, transaction: Open) -> None:
    with pytest.raises(Undo):
        async with transaction(pooled_url) as connection:
            await OUTBOX.arecord(connection, EVENT)
            raise Undo
    assert committed_ids(postgres_url) == []


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_a_session_records_and_rolls_back(pooled_url: str, postgres_url: str, driver: str) -> None:
    arguments = {"prepare_threshold": None} if driver == "psycopg" else {}
    with engine_for(pooled_url, driver, poolclass=NullPool, connect_args=arguments) as engine:
        with pytest.raises(Undo), Session(engine) as session, session.begin():
            OUTBOX.record(session, EVENT)
            raise Undo
        assert committed_ids(postgres_url) == []
        with Session(engine) as session, session.begin():
            OUTBOX.record(session, EVENT)
    assert committed_ids(postgres_url) == ["evt-001"]


def test_autocommit_is_rejected(pooled_url: str, postgres_url: str) -> None:
    with psycopg.connect(pooled_url, autocommit=True) as connection, pytest.raises(NotInTransactionError):
        OUTBOX.record(connection, EVENT)
    assert committed_ids(postgres_url) == []
