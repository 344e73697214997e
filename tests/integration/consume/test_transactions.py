"""Inbox record and effect are one transaction, whatever opens it; factories that never commit are rejected."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker

from pillarbox import ConfigurationError, Consumer, FixedDelay
from pillarbox.inbox import ConsumedEvent
from pillarbox.inbox.observations import ConsumerObservation, EventProcessed, HandlingFailed, MessageDeadLettered
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.sources import incoming
from pillarbox.testing.waiting import eventually
from pillarbox.transports.memory_source import MemorySource

INSERT = "INSERT INTO effect VALUES ('e1')"


@contextmanager
def _engine(url: str) -> Iterator[tuple[Any, Any]]:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    yield engine, lambda connection, event: connection.execute(text(INSERT))
    engine.dispose()


@contextmanager
def _sessionmaker(url: str) -> Iterator[tuple[Any, Any]]:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    yield sessionmaker(engine), lambda session, event: session.execute(text(INSERT))
    engine.dispose()


async def _execute(connection: Any, event: ConsumedEvent) -> None:
    await connection.execute(text(INSERT))


@contextmanager
def _async_engine(url: str) -> Iterator[tuple[Any, Any]]:
    yield create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://")), _execute


@contextmanager
def _async_sessionmaker(url: str) -> Iterator[tuple[Any, Any]]:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    yield async_sessionmaker(engine), _execute


@contextmanager
def _psycopg(url: str) -> Iterator[tuple[Any, Any]]:
    yield (lambda: psycopg.connect(url)), lambda connection, event: connection.execute(INSERT)


@contextmanager
def _asyncpg(url: str) -> Iterator[tuple[Any, Any]]:
    @asynccontextmanager
    async def transaction() -> AsyncIterator[Any]:
        connection = await asyncpg.connect(url)
        try:
            async with connection.transaction():
                yield connection
        finally:
            await connection.close()

    async def effect(connection: Any, event: ConsumedEvent) -> None:
        await connection.execute(INSERT)

    yield transaction, effect


Kind = Callable[[str], AbstractContextManager[tuple[Any, Any]]]
KINDS: list[Kind] = [_engine, _sessionmaker, _async_engine, _async_sessionmaker, _psycopg, _asyncpg]


@pytest.mark.parametrize("fails", [False, True], ids=["commits", "rolls back"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.removeprefix("_"))
async def test_record_and_effect_are_committed_together(database: str, kind: Kind, fails: bool) -> None:
    with kind(database) as (transaction, effect):
        observed = await _consumed_once(transaction, _failing(effect) if fails else effect)
        if hasattr(transaction, "dispose") and asyncio.iscoroutinefunction(transaction.dispose):
            await transaction.dispose()
        elif isinstance(transaction, async_sessionmaker):
            await transaction.kw["bind"].dispose()
    assert type(observed) is (MessageDeadLettered if fails else EventProcessed), observed
    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT event_id FROM effect UNION ALL SELECT event_id FROM outbox_inbox").fetchall()
        tallied = connection.execute("SELECT processed, dead_lettered FROM outbox_inbox_statistics").fetchall()
    assert found == ([] if fails else [("e1",), ("e1",)])
    assert tallied == [(0, 1) if fails else (1, 0)]


def _failing(effect: Any) -> Any:
    if asyncio.iscoroutinefunction(effect):

        async def fail_async(connection: Any, event: ConsumedEvent) -> None:
            await effect(connection, event)
            raise ValueError("no")

        return fail_async

    def fail(connection: Any, event: ConsumedEvent) -> None:
        effect(connection, event)
        raise ValueError("no")

    return fail


async def _consumed_once(transaction: Any, function: Any) -> Any:
    """Consume one event; returns its result."""
    source = MemorySource()
    observations: list[ConsumerObservation] = []
    never_again = FixedDelay(delay="1s", max_attempts=1)
    consumer = Consumer(
        source, name="billing", transaction=transaction, retry=never_again, observers=[observations.append]
    )
    consumer.on("*")(function)
    source.queue.put(incoming("e1"))
    ends = (EventProcessed, MessageDeadLettered, HandlingFailed)
    async with consumer:
        return await eventually(lambda: next((one for one in observations if isinstance(one, ends)), None))


@pytest.mark.parametrize("is_async", [False, True])
async def test_sqlite_works_in_a_thread_and_in_the_event_loop(tmp_path: Path, is_async: bool) -> None:
    path = tmp_path / "shop.db"
    async with aclosing(SqliteStore(path)) as store:
        await store.schema.apply()

    @contextmanager
    def transaction() -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(path)) as connection, connection:
            yield connection

    with transaction() as connection:
        connection.execute("CREATE TABLE effect (event_id TEXT)")
    source = MemorySource()
    observations: list[ConsumerObservation] = []
    consumer = Consumer(source, name="billing", transaction=transaction, observers=[observations.append])

    def effect(connection: sqlite3.Connection, event: ConsumedEvent) -> None:
        connection.execute("INSERT INTO effect VALUES (?)", (event.event_id,))

    async def effect_async(connection: sqlite3.Connection, event: ConsumedEvent) -> None:
        await asyncio.sleep(0)
        effect(connection, event)

    consumer.on("*")(effect_async if is_async else effect)
    for number in range(9):
        source.queue.put(incoming(f"e{number}"))
    async with consumer:
        await eventually(lambda: sum(isinstance(one, EventProcessed) for one in observations) == 9)
    with transaction() as connection:
        assert sorted(connection.execute("SELECT * FROM effect")) == [(f"e{number}",) for number in range(9)]


async def test_the_memory_store_works() -> None:
    store, seen = MemoryStore(), []

    async def effect(transaction: object, event: ConsumedEvent) -> None:
        seen.append(event.event_id)

    assert isinstance(await _consumed_once(store.transaction, effect), EventProcessed)
    assert seen == ["e1"]


async def test_a_context_manager_that_never_commits_is_rejected(database: str) -> None:
    engine = create_engine(database.replace("postgresql://", "postgresql+psycopg://"))
    observed = await _consumed_once(lambda: Session(engine), lambda session, event: None)
    engine.dispose()
    assert isinstance(observed, HandlingFailed)
    assert not observed.counted
    assert "closes and rolls back; pass the engine or the sessionmaker itself" in observed.error


async def test_a_context_manager_that_swallows_exceptions_is_rejected(database: str) -> None:
    @contextmanager
    def swallowing() -> Iterator[Any]:
        with psycopg.connect(database) as connection:
            try:
                yield connection
            except ValueError:
                connection.rollback()

    def fail(connection: Any, event: ConsumedEvent) -> None:
        raise ValueError("no")

    observed = await _consumed_once(swallowing, fail)
    assert isinstance(observed, MessageDeadLettered)
    assert "suppressed its exception" in observed.error


async def test_a_sync_function_that_returns_an_awaitable_is_rejected(database: str) -> None:
    async def later() -> None: ...

    made = []

    def not_awaited(connection: Any, event: ConsumedEvent) -> Any:
        made.append(later())
        return made[0]

    observed = await _consumed_once(lambda: psycopg.connect(database), not_awaited)
    made[0].close()
    assert "define it with `async def`" in observed.error


@pytest.mark.parametrize("wrong", [None, "postgresql://db", 42])
def test_an_object_without_transactions_is_rejected(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="which opens no transaction; pass a SQLAlchemy engine"):
        Consumer(name="billing", transaction=wrong)


def test_a_shared_session_is_rejected() -> None:
    with pytest.raises(ConfigurationError, match="is a Session, which all events would share"):
        Consumer(name="billing", transaction=Session())
