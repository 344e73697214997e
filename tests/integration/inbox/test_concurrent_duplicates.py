"""Concurrent duplicates: the second waits for the first and then depends on its result."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, closing
from threading import Event as Flag
from threading import Thread
from typing import Any

import asyncpg
import psycopg
import pytest

from pillarbox import Inbox
from tests.integration.inbox.conftest import committed_records
from tests.servers.waiting import wait_until

INBOX = Inbox()
BOUND = 90.0

Connect = Callable[[], Any]


@pytest.fixture
async def connect(postgres_url: str) -> AsyncIterator[Connect]:
    async with AsyncExitStack() as stack:

        async def connect() -> Any:
            connection = await asyncpg.connect(postgres_url)
            stack.push_async_callback(connection.close)
            return connection

        yield connect


async def _waits(url: str, connection: Any) -> None:
    """Return once the connection's backend waits for another transaction to end."""
    pid = connection.get_server_pid()

    def waiting() -> bool:
        with psycopg.connect(url) as observer:
            query = "SELECT wait_event FROM pg_stat_activity WHERE pid = %s"
            return observer.execute(query, (pid,)).fetchone() == ("transactionid",)

    await asyncio.to_thread(wait_until, waiting, bound=BOUND, what=f"backend {pid} waits for a transaction")


@pytest.mark.parametrize("committed", [True, False])
async def test_a_concurrent_duplicate_waits_and_is_admitted_only_after_a_rollback(
    postgres_url: str, connect: Connect, committed: bool
) -> None:
    first, second = await connect(), await connect()
    ahead, after = first.transaction(), second.transaction()
    await ahead.start()
    assert await INBOX.aadmit(first, "billing", "e1")
    await after.start()
    async with asyncio.TaskGroup() as tasks:
        late = tasks.create_task(INBOX.aadmit(second, "billing", "e1"))
        await _waits(postgres_url, second)
        assert not late.done()
        await (ahead.commit() if committed else ahead.rollback())
    assert late.result() is not committed
    # Without an error: its transaction can continue.
    assert await INBOX.aadmit(second, "billing", "e2")
    await after.commit()
    assert committed_records(postgres_url) == [("billing", "e1"), ("billing", "e2")]


async def test_other_events_and_other_consumers_do_not_wait(postgres_url: str, connect: Connect) -> None:
    first, second = await connect(), await connect()
    async with first.transaction(), second.transaction(), asyncio.timeout(BOUND):
        assert await INBOX.aadmit(first, "billing", "e1")
        assert await INBOX.aadmit(second, "billing", "e2")
        assert await INBOX.aadmit(second, "search", "e1")


async def test_one_of_many_concurrent_duplicates_has_an_effect(postgres_url: str, connect: Connect) -> None:
    sql = await connect()
    await sql.execute("CREATE TABLE account AS SELECT 0 AS booked")

    async def book() -> None:
        connection = await connect()
        for event_id in ("e1", "e2", "e3"):
            async with connection.transaction():
                if await INBOX.aadmit(connection, "billing", event_id):
                    await connection.execute("UPDATE account SET booked = booked + 1")

    async with asyncio.timeout(BOUND), asyncio.TaskGroup() as tasks:
        for _ in range(8):
            tasks.create_task(book())
    assert await sql.fetchval("SELECT booked FROM account") == 3


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
async def test_a_stale_snapshot_is_a_serialization_failure(connect: Connect, isolation: Any) -> None:
    first, second = await connect(), await connect()
    with pytest.raises(asyncpg.SerializationError):
        async with second.transaction(isolation=isolation):
            await second.execute("SELECT 1 FROM outbox_inbox")
            async with first.transaction():
                assert await INBOX.aadmit(first, "billing", "e1")
            await INBOX.aadmit(second, "billing", "e1")
    async with second.transaction(isolation=isolation):
        assert not await INBOX.aadmit(second, "billing", "e1")


@pytest.mark.parametrize("committed", [True, False])
def test_on_sqlite_the_second_writer_waits_too(sqlite_path: str, committed: bool) -> None:
    answers: list[bool] = []
    begun = Flag()

    def second() -> None:
        with closing(sqlite3.connect(sqlite_path, timeout=BOUND)) as connection, connection:
            begun.set()
            answers.append(INBOX.admit(connection, "billing", "e1"))

    with closing(sqlite3.connect(sqlite_path)) as first:
        assert INBOX.admit(first, "billing", "e1")
        late = Thread(target=second)
        late.start()
        assert begun.wait(BOUND)
        assert answers == []
        if committed:
            first.commit()
        else:
            first.rollback()
        late.join(BOUND)
    assert answers == [not committed]
    assert committed_records(sqlite_path) == [("billing", "e1")]
