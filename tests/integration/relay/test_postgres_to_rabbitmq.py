"""From a committed transaction to a queue, over real servers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import asyncpg
import pika
import pytest

from pillarbox import Event, ExponentialBackoff, Outbox, Relay, RelayConfig, Route
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.lookup import find_event
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import Queue, RabbitMQTransport
from tests.databases import Sql
from tests.servers.rabbitmq import RabbitMQServer

EVENTS = 1000
KEYS = 20


@pytest.fixture
async def sql(postgres_url: str) -> AsyncIterator[Sql]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


async def record(sql: Sql, *events: Event) -> None:
    async with sql.transaction():
        await Outbox().arecord(sql, *events)


def received(server: RabbitMQServer, queue: str) -> list[tuple[str | None, bytes]]:
    """All messages of a queue, read with plain pika."""
    with pika.BlockingConnection(pika.URLParameters(server.url())) as connection:
        channel = connection.channel()
        messages = []
        while (got := channel.basic_get(queue, auto_ack=True))[0] is not None:
            messages.append((got[1].message_id, got[2]))
        return messages


def orders(number: int) -> Event:
    return Event("order.placed", {"n": number}, event_id=f"e{number}", key=f"order {number % KEYS}")


async def test_committed_events_arrive_once_and_in_order(
    postgres_url: str, rabbitmq_server: RabbitMQServer, sql: Sql
) -> None:
    for first in range(0, EVENTS, 100):
        await record(sql, *(orders(number) for number in range(first, first + 100)))
    undone = sql.transaction()
    await undone.start()
    await Outbox().arecord(sql, Event("order.placed", {}, event_id="never"))
    await undone.rollback()
    async with (
        aclosing(PostgresStore(postgres_url)) as store,
        aclosing(RabbitMQTransport(rabbitmq_server.url(), queues=[Queue(name="everything")])) as rabbit,
    ):
        relay = Relay(
            store=store,
            transports={"rabbit": rabbit},
            destinations={"orders": RabbitMQTransport.to(exchange="", routing_key="everything")},
            routes=[Route(event_type="order.*", to=["orders"])],
        )
        await relay.run_until_empty()
    arrived = [event_id or "" for event_id, _ in received(rabbitmq_server, "everything")]
    assert sorted(arrived) == sorted(f"e{number}" for number in range(EVENTS))
    for key in range(KEYS):
        mine = [event_id for event_id in arrived if int(event_id[1:]) % KEYS == key]
        assert mine == [f"e{number}" for number in range(key, EVENTS, KEYS)]
    assert await sql.fetchval("SELECT count(*) FROM outbox_message") == 0
    assert await sql.fetchval("SELECT count(*) FROM outbox_history WHERE attempts = 0") == EVENTS


async def test_without_routes_an_event_goes_to_the_queue_of_its_type(
    postgres_url: str, rabbitmq_server: RabbitMQServer, sql: Sql
) -> None:
    await record(sql, Event("invoice.sent", {"n": 1}, event_id="i1"))
    async with (
        aclosing(PostgresStore(postgres_url)) as store,
        aclosing(RabbitMQTransport(rabbitmq_server.url())) as rabbit,
    ):
        await Relay(store=store, transports={"rabbit": rabbit}).run_until_empty()
    assert received(rabbitmq_server, "invoice.sent") == [("i1", b'{"n":1}')]


async def test_each_destination_gets_its_own_copy(postgres_url: str, rabbitmq_server: RabbitMQServer, sql: Sql) -> None:
    await record(sql, orders(1), orders(21))
    async with (
        aclosing(PostgresStore(postgres_url)) as store,
        aclosing(RabbitMQTransport(rabbitmq_server.url(), queues=[Queue(name="copies")])) as rabbit,
    ):
        relay = Relay(
            store=store,
            transports={"rabbit": rabbit},
            destinations={
                "good": RabbitMQTransport.to(exchange="", routing_key="copies"),
                "unbound": RabbitMQTransport.to(exchange="amq.topic", routing_key="no.such.binding"),
            },
            routes=[Route(to=["good", "unbound"])],
            retry=ExponentialBackoff(base="1h", max_delay="1h", jitter="none"),
        )
        await relay.run_until_empty()
        assert [event_id for event_id, _ in received(rabbitmq_server, "copies")] == ["e1", "e21"]
        first = {row.destination: row for row in await find_event(store, "e1")}
        assert (first["good"].status, first["unbound"].status) == ("PUBLISHED", "PENDING")
        assert first["unbound"].retry_count == 1
        # The second message of the key waits for the first, at that destination only.
        second = {row.destination: row for row in await find_event(store, "e21")}
        assert (second["good"].status, second["unbound"].retry_count) == ("PUBLISHED", 0)


async def test_a_sleeping_relay_is_woken_by_a_record_and_drains_on_stop(
    postgres_url: str, rabbitmq_server: RabbitMQServer, sql: Sql
) -> None:
    async with (
        aclosing(PostgresStore(postgres_url)) as store,
        aclosing(RabbitMQTransport(rabbitmq_server.url())) as rabbit,
    ):
        async with Relay(
            store=store,
            transports={"rabbit": rabbit},
            config=RelayConfig(poll_interval="1h", lease="1m", send_timeout="10s"),
        ):

            async def asleep() -> bool:
                return bool(await sql.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"))

            await eventually(asleep)
            await record(sql, Event("woken.up", {}, event_id="w1"))

            async def delivered() -> bool:
                return bool(await sql.fetchval("SELECT count(*) FROM outbox_history"))

            await eventually(delivered)
        assert await sql.fetchval("SELECT count(*) FROM outbox_relay") == 0
        assert await sql.fetchval("SELECT count(*) FROM outbox_lane WHERE owner IS NOT NULL") == 0


async def test_two_relays_share_the_lanes_and_deliver_everything_once(
    postgres_url: str, rabbitmq_server: RabbitMQServer, sql: Sql
) -> None:
    for first in range(0, EVENTS, 100):
        await record(sql, *(orders(number) for number in range(first, first + 100)))
    rabbits = [RabbitMQTransport(rabbitmq_server.url(), queues=[Queue(name="shared")]) for _ in range(2)]
    stores = [PostgresStore(postgres_url) for _ in range(2)]
    relays = [
        Relay(
            store=store,
            transports={"rabbit": rabbit},
            destinations={"orders": RabbitMQTransport.to(exchange="", routing_key="shared")},
            routes=[Route(to=["orders"])],
            config=RelayConfig(heartbeat_interval="200ms"),
        )
        for store, rabbit in zip(stores, rabbits, strict=True)
    ]
    running = [asyncio.create_task(relay.run()) for relay in relays]

    async def shared() -> bool:
        owners = await sql.fetch("SELECT count(*) FROM outbox_lane WHERE owner IS NOT NULL GROUP BY owner")
        left = await sql.fetchval("SELECT count(*) FROM outbox_message")
        return left == 0 and sorted(row[0] for row in owners) == [32, 32]

    await eventually(shared, within=90)
    for relay in relays:
        relay.stop()
    await asyncio.gather(*running)
    for rabbit, store in zip(rabbits, stores, strict=True):
        await rabbit.aclose()
        await store.aclose()
    arrived = [event_id or "" for event_id, _ in received(rabbitmq_server, "shared")]
    assert sorted(arrived) == sorted(f"e{number}" for number in range(EVENTS))
