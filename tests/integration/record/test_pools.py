"""With an engine, a session factory or a pool, record opens its own transaction."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import asyncpg
import pytest
from psycopg2.pool import ThreadedConnectionPool
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import async_sessionmaker
from sqlalchemy.orm import sessionmaker

from pillarbox import DuplicateEventError, Event, Inbox, NotInTransactionError, Outbox, RecordError
from tests.integration.record.conftest import EventIds
from tests.integration.record.sqlalchemy_ways import async_engine_for, engine_for

pytestmark = pytest.mark.sqlalchemy

Opened = Callable[[str], AbstractAsyncContextManager[Any]]
FIRST, SECOND = (Event("order.placed", {"id": 1}, event_id=event_id) for event_id in ("evt-001", "evt-002"))


@asynccontextmanager
async def engine(url: str) -> AsyncIterator[object]:
    with engine_for(url, "psycopg") as opened:
        yield opened


@asynccontextmanager
async def factory(url: str) -> AsyncIterator[object]:
    with engine_for(url, "psycopg") as opened:
        yield sessionmaker(opened)


@asynccontextmanager
async def psycopg2_pool(url: str) -> AsyncIterator[object]:
    pool = ThreadedConnectionPool(0, 1, url)
    try:
        yield pool
    finally:
        pool.closeall()


@asynccontextmanager
async def sqlite_engine(url: str) -> AsyncIterator[object]:
    opened = create_engine(f"sqlite:///{url}")
    try:
        yield opened
    finally:
        opened.dispose()


@asynccontextmanager
async def async_engine(url: str) -> AsyncIterator[object]:
    async with async_engine_for(url, "asyncpg") as opened:
        yield opened


@asynccontextmanager
async def async_factory(url: str) -> AsyncIterator[object]:
    async with async_engine_for(url, "psycopg") as opened:
        yield async_sessionmaker(opened)


def asyncpg_pool(url: str) -> AbstractAsyncContextManager[object]:
    return asyncpg.create_pool(url, min_size=0, max_size=1)


BLOCKING = [
    *((one, "postgres_url") for one in (engine, factory, psycopg2_pool)),
    (sqlite_engine, "sqlite_path"),
]
AWAITED = [(one, "postgres_url") for one in (async_engine, async_factory, asyncpg_pool)]
EVERY = [(opened, database, opened in {one for one, _ in AWAITED}) for opened, database in [*BLOCKING, *AWAITED]]
NAMES = [opened.__name__ for opened, _, _ in EVERY]


async def record(connection: Any, *events: Event, awaited: bool) -> list[str]:
    return await Outbox().arecord(connection, *events) if awaited else Outbox().record(connection, *events)


@pytest.mark.parametrize(("opened", "database", "awaited"), EVERY, indirect=["database"], ids=NAMES)
async def test_events_are_committed_in_their_own_transaction(
    opened: Opened, database: str, awaited: bool, committed: EventIds
) -> None:
    async with opened(database) as connection:
        assert await record(connection, FIRST, SECOND, awaited=awaited) == ["evt-001", "evt-002"]
        assert committed() == ["evt-001", "evt-002"]  # while the pool is still open


@pytest.mark.parametrize(("opened", "database", "awaited"), EVERY, indirect=["database"], ids=NAMES)
async def test_all_events_of_a_call_are_recorded_or_none(
    opened: Opened, database: str, awaited: bool, committed: EventIds
) -> None:
    async with opened(database) as connection:
        await record(connection, SECOND, awaited=awaited)
        with pytest.raises(DuplicateEventError):
            await record(connection, FIRST, SECOND, awaited=awaited)
        assert committed() == ["evt-002"]
        await record(connection, FIRST, awaited=awaited)  # the connection was returned to the pool
    assert committed() == ["evt-002", "evt-001"]


@pytest.mark.parametrize(("opened", "database", "awaited"), EVERY, indirect=["database"], ids=NAMES)
async def test_the_right_method_is_named(opened: Opened, database: str, awaited: bool) -> None:
    async with opened(database) as connection:
        with pytest.raises(RecordError, match=r"call outbox\.record" if not awaited else r"call await outbox\.arecord"):
            await record(connection, FIRST, awaited=not awaited)


async def test_an_autocommit_engine_is_rejected(postgres_url: str) -> None:
    with engine_for(postgres_url, "psycopg") as opened, pytest.raises(NotInTransactionError):
        Outbox().record(opened.execution_options(isolation_level="AUTOCOMMIT"), FIRST)


async def test_admit_rejects_engines_and_pools(postgres_url: str) -> None:
    """An admission that commits before the effect could lose it."""
    async with asyncpg_pool(postgres_url) as pool:
        with pytest.raises(RecordError, match=r"pool\.acquire\(\) as connection, connection\.transaction\(\)"):
            await Inbox().aadmit(cast(Any, pool), "billing", "evt-001")
    with (
        engine_for(postgres_url, "psycopg") as opened,
        pytest.raises(RecordError, match=r"with engine\.begin\(\) as connection"),
    ):
        Inbox().admit(cast(Any, opened), "billing", "evt-001")
