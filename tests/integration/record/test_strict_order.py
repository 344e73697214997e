"""With strict order, only writers of the same key wait for each other until they commit."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import psycopg
import pytest

from pillarbox import Event, Outbox, TableNames
from tests.integration.record.conftest import committed_ids
from tests.servers.waiting import wait_until

OUTBOX = Outbox(strict_order=True)
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


def _placed(order: str, event_id: str) -> Event:
    return Event("order.placed", {}, event_id=event_id, aggregate_type="ORDER", aggregate_id=order)


async def _waits(url: str, connection: Any) -> None:
    """Return once the connection's backend waits for an advisory lock."""
    pid = connection.get_server_pid()

    def waiting() -> bool:
        with psycopg.connect(url) as observer:
            query = "SELECT wait_event FROM pg_stat_activity WHERE pid = %s"
            return observer.execute(query, (pid,)).fetchone() == ("advisory",)

    await asyncio.to_thread(wait_until, waiting, bound=BOUND, what=f"backend {pid} waits for a lock")


async def test_the_second_writer_of_a_key_waits_for_the_first_to_commit(postgres_url: str, connect: Connect) -> None:
    first, second = await connect(), await connect()
    ahead, after = first.transaction(), second.transaction()
    await ahead.start()
    await OUTBOX.arecord(first, _placed("42", "first"))
    await after.start()
    async with asyncio.TaskGroup() as tasks:
        late = tasks.create_task(OUTBOX.arecord(second, _placed("42", "second")))
        await _waits(postgres_url, second)
        assert not late.done()
        await ahead.commit()
    await after.commit()
    assert committed_ids(postgres_url) == ["first", "second"]


async def test_other_keys_and_events_without_key_do_not_wait(postgres_url: str, connect: Connect) -> None:
    first, second = await connect(), await connect()
    async with first.transaction(), asyncio.timeout(BOUND):
        await OUTBOX.arecord(first, _placed("42", "first"))
        async with second.transaction():
            await OUTBOX.arecord(second, _placed("43", "other key"), Event("tick", {}, event_id="no key"))
    assert sorted(committed_ids(postgres_url)) == ["first", "no key", "other key"]


async def test_without_strict_order_writers_do_not_wait(postgres_url: str, connect: Connect) -> None:
    first, second = await connect(), await connect()
    async with first.transaction(), asyncio.timeout(BOUND):
        await Outbox().arecord(first, _placed("42", "first"))
        async with second.transaction():
            await Outbox().arecord(second, _placed("42", "second"))
    assert sorted(committed_ids(postgres_url)) == ["first", "second"]


async def test_writers_with_keys_in_opposite_order_do_not_deadlock(postgres_url: str, connect: Connect) -> None:
    keys = [str(number) for number in range(50)]
    rounds = 20

    async def write(name: str, order: list[str]) -> None:
        connection = await connect()
        for number in range(rounds):
            async with connection.transaction():
                await OUTBOX.arecord(connection, *(_placed(key, f"{name} {number} {key}") for key in order))

    async with asyncio.timeout(BOUND), asyncio.TaskGroup() as tasks:
        tasks.create_task(write("up", keys))
        tasks.create_task(write("down", keys[::-1]))
    assert len(committed_ids(postgres_url)) == 2 * rounds * len(keys)


async def test_two_outboxes_do_not_wait_for_each_others_keys(postgres_url: str, connect: Connect) -> None:
    def locks() -> set[tuple[int, int]]:
        with psycopg.connect(postgres_url) as observer:
            query = "SELECT classid::bigint, objid::bigint FROM pg_locks WHERE locktype = 'advisory'"
            return {(high, low) for high, low in observer.execute(query)}

    connection = await connect()
    async with connection.transaction():
        await OUTBOX.arecord(connection, _placed("42", "one"))
        of_the_first = locks()
    with psycopg.connect(postgres_url) as other:
        other.execute("CREATE TABLE shop_message (LIKE outbox_message INCLUDING ALL)")
        Outbox(tables=TableNames(prefix="shop_"), wakeup="none", strict_order=True).record(other, _placed("42", "two"))
        assert len(of_the_first) == len(locks()) == 1
        assert of_the_first.isdisjoint(locks())
