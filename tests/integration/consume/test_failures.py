"""Failed messages are retried a bounded number of times and then dead-lettered; nothing is lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pika
import pytest

from pillarbox import FixedDelay, PermanentError
from pillarbox.inbox import ConsumedEvent
from pillarbox.inbox.observations import EventProcessed, HandlingFailed, MessageDeadLettered
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import Binding, DeadLetterTarget, Exchange, Queue
from tests.integration.consume.broker import dead_letters, publish, ready
from tests.integration.consume.conftest import Effects, MakeShop, Shop
from tests.integration.rabbitmq.consumer import Taken, channel, publish_confirmed, take_all


async def dead_letter_of(shop: Shop, url: str, queue: str) -> tuple[Taken, dict[str, Any]]:
    """The only dead letter and its headers."""
    await eventually(lambda: shop.kinds(MessageDeadLettered), within=90)
    [dead_letter] = await asyncio.to_thread(dead_letters, url, queue)
    return dead_letter, dict(dead_letter.properties.headers or {})


@pytest.mark.parametrize(
    ("body", "properties", "reason"),
    [
        (b'{"id": ', {}, "has the content type application/json and does not decode"),
        (b"\xff\xfe", {}, "has the content type application/json and does not decode"),
        (b"{}", {"message_id": None}, "has no id"),
        (b"{}", {"message_id": "a\nb"}, "control character"),
        (b"{}", {"type": None}, "has no event type"),
        (b"{}", {"headers": {"schemaVersion": "new"}}, "schemaVersion"),
    ],
    ids=["half a JSON", "no UTF-8", "no id", "an id with a line end", "no type", "no version"],
)
async def test_an_undecodable_message_is_dead_lettered_at_once_unchanged(
    url: str, queue: str, make_shop: MakeShop, effects: Effects, body: bytes, properties: dict[str, Any], reason: str
) -> None:
    await asyncio.to_thread(_publish_spoiled, url, queue, body, properties)
    await asyncio.to_thread(publish, url, queue, "good")
    shop = make_shop(retry=FixedDelay(delay="1h"))
    shop.consumer.on("*")(shop.effect)
    async with shop.running():
        dead_letter, notes = await dead_letter_of(shop, url, queue)
        await eventually(lambda: shop.kinds(EventProcessed))
    assert dead_letter.body == body
    assert reason in notes["pillarbox-reason"]
    assert notes["pillarbox-queue"] == queue
    assert effects() == shop.began == ["good"]


def _publish_spoiled(url: str, queue: str, body: bytes, properties: dict[str, Any]) -> None:
    publish(url, queue)
    given: dict[str, Any] = {"message_id": "bad", "type": "order.placed", "content_type": "application/json"}
    with channel(url) as broker:
        broker.confirm_delivery()
        publish_confirmed(broker, "", queue, body, pika.BasicProperties(**(given | properties)))


async def test_retries_are_bounded_and_the_dead_letter_has_the_errors(
    url: str, queue: str, make_shop: MakeShop, effects: Effects
) -> None:
    publish(url, queue, "e1", headers={"tenant": "acme"}, app_id="till")
    shop = make_shop(retry=FixedDelay(delay="50ms", max_attempts=3))

    @shop.consumer.on("order.placed")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        await shop.effect(transaction, event)
        raise ValueError(f"attempt {event.attempt} failed\nand this line is omitted")

    async with shop.running():
        dead_letter, notes = await dead_letter_of(shop, url, queue)
    assert (shop.began, effects()) == (["e1"] * 3, [])
    assert (dead_letter.properties.message_id, dead_letter.properties.app_id, notes["tenant"]) == ("e1", "till", "acme")
    assert (notes["pillarbox-attempts"], notes["pillarbox-deferrals"]) == (3, 0)
    assert notes["pillarbox-reason"] == "ValueError: attempt 3 failed"
    assert notes["pillarbox-first-failed-at"] < notes["pillarbox-last-failed-at"]
    assert [failure.error for failure in shop.kinds(HandlingFailed)] == [
        "ValueError: attempt 1 failed",
        "ValueError: attempt 2 failed",
    ]
    assert ready(url, queue) == 0


async def test_a_permanent_error_is_dead_lettered_at_once(
    url: str, queue: str, make_shop: MakeShop, effects: Effects
) -> None:
    publish(url, queue, "e1")
    shop = make_shop()

    @shop.consumer.on("order.placed")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        await shop.effect(transaction, event)
        raise PermanentError("order 42 has no address")

    async with shop.running():
        _, notes = await dead_letter_of(shop, url, queue)
    assert (shop.began, effects(), notes["pillarbox-attempts"]) == (["e1"], [], 1)
    assert notes["pillarbox-reason"] == "order 42 has no address"


async def test_an_unhandled_type_is_retried_and_then_dead_lettered(url: str, queue: str, make_shop: MakeShop) -> None:
    publish(url, queue, "e1", type="order.cancelled")
    shop = make_shop()
    shop.consumer.on("order.placed")(shop.effect)
    async with shop.running():
        _, notes = await dead_letter_of(shop, url, queue)
    assert "no handler for event type order.cancelled" in notes["pillarbox-reason"]
    assert notes["pillarbox-attempts"] == 3


async def test_a_database_outage_counts_no_attempt(url: str, queue: str, make_shop: MakeShop, effects: Effects) -> None:
    publish(url, queue, "e1")
    refusals = 4

    @asynccontextmanager
    async def transaction() -> AsyncIterator[Any]:
        nonlocal refusals
        if refusals:
            refusals -= 1
            raise ConnectionRefusedError("the database is unavailable")
        async with shop.transaction() as connection:
            yield connection

    shop = make_shop(transaction=transaction, retry=FixedDelay(delay="50ms", max_attempts=2))
    shop.consumer.on("order.placed")(shop.effect)
    async with shop.running():
        await eventually(lambda: shop.kinds(EventProcessed))
    assert refusals == 0
    # Reported once: the event stays in flight until the database is available.
    assert [failure.counted for failure in shop.kinds(HandlingFailed)] == [False]
    assert [handled.attempt for handled in shop.kinds(EventProcessed)] == [1]
    assert effects() == ["e1"]
    assert dead_letters(url, queue) == []


async def test_a_waiting_message_does_not_delay_others(url: str, queue: str, make_shop: MakeShop) -> None:
    publish(url, queue, "bad", "good1", "good2")
    shop = make_shop(prefetch=1, retry_delays=["2s"])

    @shop.consumer.on("order.placed")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        await shop.effect(transaction, event)
        if event.event_id == "bad" and event.attempt == 1:
            raise ValueError("not yet")

    async with shop.running():
        await eventually(lambda: len(shop.kinds(EventProcessed)) == 3)
    assert shop.began == ["bad", "good1", "good2", "bad"]


@pytest.mark.parametrize("error", [ValueError("it waits"), PermanentError("it does not")], ids=repr)
async def test_headers_with_broker_semantics_are_removed(
    url: str, queue: str, make_shop: MakeShop, error: Exception
) -> None:
    elsewhere = f"{queue}.wait.2s"  # removed with the others
    with channel(url) as broker:
        broker.queue_declare(elsewhere)
    publish(url, queue, "e1", expiration="60000", user_id="guest", headers={"CC": [elsewhere]})
    assert len(take_all(url, elsewhere)) == 1
    shop = make_shop()

    @shop.consumer.on("order.placed")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        raise error

    async with shop.running():
        dead_letter, notes = await dead_letter_of(shop, url, queue)
    assert (dead_letter.properties.expiration, dead_letter.properties.user_id) == (None, None)
    assert [name for name in notes if name.startswith(("x-", "CC"))] in ([], ["x-delivery-count"])  # of its new queue
    assert take_all(url, elsewhere) == []


async def test_configured_dead_letter_queues_are_declared_and_used(url: str, queue: str, make_shop: MakeShop) -> None:
    work = Queue(
        name=queue,
        dead_letter=DeadLetterTarget(exchange=f"{queue}.dlx", queue=f"{queue}.dlq"),
        bindings=[Binding(exchange=f"{queue}.events", routing_key="order.*")],
    )
    shop = make_shop(work=work, exchanges=[Exchange(name=f"{queue}.events")])

    @shop.consumer.on("order.placed")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        raise PermanentError("no")

    await shop.source.declare_topology()
    with channel(url) as broker:
        broker.confirm_delivery()
        order = pika.BasicProperties(message_id="e1", type="order.placed")
        publish_confirmed(broker, f"{queue}.events", "order.placed", b"{}", order)
    async with shop.running():
        _, notes = await dead_letter_of(shop, url, queue)
    assert notes["pillarbox-reason"] == "no"
    with channel(url) as broker:
        for name in (f"{queue}.events", f"{queue}.dlx"):
            broker.exchange_delete(name)
