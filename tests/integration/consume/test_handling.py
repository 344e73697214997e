"""Receive, admit, handle, commit, ack: an event has its effect once, and caused events have its ids."""

import asyncio
from typing import Any

import asyncpg
import pytest

from pillarbox import Event, Inbox, Outbox, Relay, Route
from pillarbox.inbox import ConsumedEvent
from pillarbox.inbox.observations import ConsumerStarted, ConsumerStopped, DuplicateSkipped, EventProcessed
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import RabbitMQTransport
from tests.integration.consume.broker import publish, ready
from tests.integration.consume.conftest import Effects, MakeShop

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def test_an_event_is_handled_and_acked(
    url: str, queue: str, make_shop: MakeShop, effects: Effects, database: str
) -> None:
    publish(url, queue, "e1", "e2", headers={"aggregateId": "42", "schemaVersion": 3})
    shop, seen = make_shop(), []

    @shop.consumer.on("order.*")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        seen.append((event.payload, event.aggregate_id, event.schema_version, event.attempt))
        await shop.effect(transaction, event)

    async with shop.running():
        await eventually(lambda: len(shop.kinds(EventProcessed)) == 2)
    assert effects() == ["e1", "e2"]
    assert sorted(seen, key=str) == [({"id": "e1"}, "42", 3, 1), ({"id": "e2"}, "42", 3, 1)]
    assert ready(url, queue) == 0
    assert shop.observations[0] == ConsumerStarted(consumer="billing")
    assert shop.observations[-1] == ConsumerStopped(consumer="billing", drained=True)


async def test_a_duplicate_is_skipped_and_acked(url: str, queue: str, make_shop: MakeShop, effects: Effects) -> None:
    publish(url, queue, "e1", "e1", "e1")
    shop = make_shop()
    shop.consumer.on("order.placed")(shop.effect)
    async with shop.running():
        await eventually(lambda: len(shop.kinds(DuplicateSkipped)) == 2)
    assert effects() == shop.began == ["e1"]
    assert ready(url, queue) == 0


async def test_two_consumers_handle_the_same_event(
    url: str, queue: str, make_shop: MakeShop, effects: Effects, database: str
) -> None:
    connection = await asyncpg.connect(database)
    async with connection.transaction():
        assert await Inbox().aadmit(connection, "search", "e1")
    await connection.close()
    publish(url, queue, "e1")
    shop = make_shop()
    shop.consumer.on("order.placed")(shop.effect)
    async with shop.running():
        await eventually(lambda: asyncio.to_thread(effects))
    assert effects() == ["e1"]


@pytest.mark.parametrize("fails_first", [False, True])
async def test_caused_events_are_recorded_once_with_correlation_and_causation(
    url: str, queue: str, make_shop: MakeShop, database: str, fails_first: bool
) -> None:
    outbox, store, rabbit = Outbox(), PostgresStore(database), RabbitMQTransport(url)
    connection = await asyncpg.connect(database)
    placed = Event("order.placed", {"id": 42}, event_id="e1", correlation_id="req-123", trace_id=TRACE)
    async with connection.transaction():
        await outbox.arecord(connection, placed)
    to_queue = {"orders": RabbitMQTransport.to(routing_key=queue)}
    relay = Relay(
        store=store, transports={"rabbit": rabbit}, destinations=to_queue, routes=[Route(event_type="*", to=["orders"])]
    )
    await relay.run_until_empty()
    shop = make_shop()

    @shop.consumer.on("order.placed")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        await outbox.arecord(transaction, Event("invoice.sent", event.payload).caused_by(event))
        if fails_first and event.attempt == 1:
            raise TimeoutError("the first attempt fails")

    async with shop.running():
        await eventually(lambda: shop.kinds(EventProcessed))
    query = "SELECT event_type, causation_id, correlation_id, trace_id FROM outbox_message"
    found = [tuple(row) for row in await connection.fetch(query)]
    assert found == [("invoice.sent", "e1", "req-123", TRACE)]
    for closing in (connection.close, rabbit.aclose, store.aclose):
        await closing()


async def test_no_more_than_the_prefetch_is_in_flight(
    url: str, queue: str, make_shop: MakeShop, effects: Effects
) -> None:
    ids = [f"e{n}" for n in range(9)]
    publish(url, queue, *ids)
    shop, at_once, most = make_shop(prefetch=3), 0, 0
    go_on = asyncio.Event()

    @shop.consumer.on("*")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await go_on.wait()
        await shop.effect(transaction, event)
        at_once -= 1

    async with shop.running():
        await eventually(lambda: at_once == 3)
        assert await asyncio.to_thread(ready, url, queue) == 6
        go_on.set()
        await eventually(lambda: len(shop.kinds(EventProcessed)) == 9)
    assert most == 3
    assert effects() == ids


async def test_several_consumers_share_a_queue(url: str, queue: str, make_shop: MakeShop, effects: Effects) -> None:
    ids = sorted(f"e{n}" for n in range(30))
    shops = [make_shop(prefetch=2) for _ in range(3)]
    for shop in shops:
        shop.consumer.on("*")(shop.effect)
    async with shops[0].running(), shops[1].running(), shops[2].running():
        await asyncio.to_thread(publish, url, queue, *ids)
        await eventually(lambda: sum(len(shop.kinds(EventProcessed)) for shop in shops) == 30)
    assert effects() == ids
    assert all(shop.began for shop in shops)
