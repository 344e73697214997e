"""A relay requests notifications of PostgreSQL producers, and pauses them under load."""

import asyncio
from collections.abc import Sequence
from itertools import cycle

import asyncpg

from pillarbox import Event, Handlers, Outbox, Relay, RelayConfig
from pillarbox.statements import Names
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.postgres.wakeup import MAX_NOTIFICATIONS
from pillarbox.testing.waiting import eventually
from pillarbox.transports.handlers import HandlerContext, ReceivedEvent
from tests.databases import Sql

LONG = 3600.0


async def sleepers(sql: Sql) -> int:
    """The number of relay sessions that hold the lock that makes producers notify."""
    found: int = await sql.fetchval(
        "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
        " WHERE locktype = 'advisory' AND granted AND datname = current_database()"
    )
    return found


async def asleep(sql: Sql) -> bool:
    return await sleepers(sql) == 1


async def awake(sql: Sql) -> bool:
    return await sleepers(sql) == 0


async def more_than(seen: Sequence[object], number: int) -> bool:
    return len(seen) > number


async def notify(times: int, *sessions: Sql) -> None:
    """Notify like producers, one session after the other."""
    for _, sql in zip(range(times), cycle(sessions), strict=False):
        await sql.execute(f'NOTIFY "{Names(schema="public").channel}"')


async def test_repeated_sleep_requests_take_one_lock(store: PostgresStore, sql: Sql) -> None:
    await store.wakeup.request("a", LONG)
    await store.wakeup.request("a", LONG)
    assert await sleepers(sql) == 1
    await store.wakeup.request("a", 0)
    assert await sleepers(sql) == 0
    await store.wakeup.request("a", 0)
    await store.wakeup.request("a", LONG)
    assert await sleepers(sql) == 1


async def test_a_new_session_takes_the_sleep_lock_again(store: PostgresStore, sql: Sql) -> None:
    await store.wakeup.request("a", LONG)
    await sql.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
    await eventually(lambda: awake(sql))
    await store._connections[3].ended()
    await store.wakeup.request("a", LONG)
    assert await sleepers(sql) == 1


async def test_too_many_notifications_are_paused_and_resumed(store: PostgresStore, sql: Sql, postgres_url: str) -> None:
    await store.wakeup.request("a", LONG)
    second = await asyncpg.connect(postgres_url)
    woken: list[int] = []
    notifies: list[bool] = []

    async def listen() -> None:
        while True:
            if await store.wakeup.wait(LONG):
                notifies.append(store.wakeup.notifies)
                woken.append(await sleepers(sql_too))

    sql_too = await asyncpg.connect(postgres_url)
    listening = asyncio.create_task(listen())

    async def stopped() -> bool:
        await notify(MAX_NOTIFICATIONS + 1, sql, second)
        return await awake(sql)

    await eventually(stopped)
    at = len(woken)

    async def woken_asleep() -> bool:
        return 1 in woken[at:]

    # Earlier notifications may wake it during the pause; at its end it sleeps before it is woken.
    await eventually(woken_asleep)
    # It is also woken when producers stop notifying.
    assert set(notifies) == {True, False}
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    await sql_too.close()
    await second.close()


async def test_a_sleep_request_during_a_pause_waits_for_its_end(store: PostgresStore, sql: Sql) -> None:
    await store.wakeup.request("a", LONG)
    store.wakeup._limit.begin_pause(asyncio.get_running_loop().time())
    await store.wakeup.request("a", 0)
    await store.wakeup.request("a", LONG)
    assert await sleepers(sql) == 0
    assert await store.wakeup.wait(LONG) is True
    assert await sleepers(sql) == 1


async def test_a_relay_awake_at_the_end_of_a_pause_does_not_sleep(store: PostgresStore, sql: Sql) -> None:
    await store.wakeup.request("a", LONG)
    store.wakeup._limit.begin_pause(asyncio.get_running_loop().time())
    await store.wakeup.request("a", 0)
    assert await store.wakeup.wait(LONG) is False
    assert await sleepers(sql) == 0


def _relay(store: PostgresStore, handled: list[str]) -> Relay:
    handlers = Handlers()

    @handlers.on("a", name="seen")
    async def seen(event: ReceivedEvent, context: HandlerContext) -> None:
        handled.append(event.event_id)

    return Relay(store=store, transports={"handlers": handlers}, config=RelayConfig(poll_interval="1h"))


async def test_an_event_committed_after_the_relay_slept_is_delivered(
    store: PostgresStore, sql: Sql, postgres_url: str
) -> None:
    handled: list[str] = []
    producer = await asyncpg.connect(postgres_url)
    transaction = producer.transaction()
    await transaction.start()
    await Outbox().arecord(producer, Event("a", {}, event_id="early"))
    async with _relay(store, handled):
        await eventually(lambda: asleep(sql))
        await transaction.commit()
        await eventually(lambda: more_than(handled, 0))
    assert handled == ["early"]
    await producer.close()


async def test_a_stopped_relay_requests_no_notifications(store: PostgresStore, sql: Sql) -> None:
    async with _relay(store, []):
        await eventually(lambda: asleep(sql))
    assert await sleepers(sql) == 0
