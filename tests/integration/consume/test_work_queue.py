"""The work queue of a consumer: its delivery limit, and declarations by relay and consumer."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from pillarbox import ConfigurationError
from pillarbox.inbox.observations import EventProcessed
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import Queue, RabbitMQSource, RabbitMQTransport
from pillarbox.transports.rabbitmq.topology import DELIVERY_LIMIT, work_queue
from tests.integration.consume.broker import RETRY_DELAYS, dead_letters, declared, publish, ready
from tests.integration.consume.conftest import MakeShop
from tests.integration.rabbitmq.consumer import channel
from tests.servers.waiting import wait_until


async def test_the_broker_dead_letters_a_message_after_its_delivery_limit(url: str, queue: str) -> None:
    async with aclosing(RabbitMQSource(url, queue=queue, retry_delays=RETRY_DELAYS)) as source:
        await source.declare_topology()
    publish(url, work_queue(queue), "e1")
    for _ in range(DELIVERY_LIMIT + 1):
        # Like a client that crashes on receipt: its connection closes without an ack.
        with channel(url) as broker:
            wait_until(lambda: broker.basic_get(queue)[0] is not None, bound=30, what="it comes")
    wait_until(lambda: ready(url, f"{queue}.dlq") == 1, bound=30, what="it is a dead letter")
    [dead_letter] = dead_letters(url, queue)
    headers: dict[str, Any] = dict(dead_letter.properties.headers or {})
    [entry] = headers["x-death"]
    assert (dead_letter.properties.message_id, entry["reason"]) == ("e1", "delivery_limit")


@pytest.mark.parametrize("first", [Queue, work_queue])
async def test_relay_and_consumer_can_declare_in_either_order(
    url: str, queue: str, make_shop: MakeShop, first: type[Queue]
) -> None:
    with channel(url) as broker:
        declared(broker, first(name=queue))
    async with aclosing(RabbitMQTransport(url, queues=[Queue(name=queue)])) as transport:
        await transport.declare_topology()
    shop = make_shop()
    shop.consumer.on("order.placed")(shop.effect)
    publish(url, first(name=queue), "e1")
    async with shop.running():
        await eventually(lambda: shop.kinds(EventProcessed), within=30)


@pytest.mark.parametrize("existing", [Queue(name="-", type="classic"), Queue(name="-", max_length=10)])
async def test_a_queue_that_another_application_declared_is_consumed_with_a_warning(
    url: str, queue: str, make_shop: MakeShop, existing: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    foreign = replace(existing, name=queue)
    publish(url, foreign, "e1")
    shop = make_shop(work=queue)
    shop.consumer.on("order.placed")(shop.effect)
    async with shop.running():
        await eventually(lambda: shop.kinds(EventProcessed), within=60)
    warnings = [record.getMessage() for record in caplog.records if record.name == "pillarbox.rabbitmq"]
    assert len([text for text in warnings if f"queue '{queue}' at " in text and "is used as it is" in text]) == 1


async def test_a_message_that_crashed_its_consumer_is_quarantined_on_a_classic_queue_of_another_application(
    url: str, queue: str
) -> None:
    publish(url, Queue(name=queue, type="classic"), "e1")
    async with aclosing(RabbitMQSource(url, queue=queue, retry_delays=RETRY_DELAYS)) as source:
        delivery = await source.receive()
        await delivery.retry(delay=0, reason="not yet")
        delivery = await source.receive()
        assert not delivery.quarantined
    # Closed without an ack, as by a crash.
    async with aclosing(RabbitMQSource(url, queue=queue, retry_delays=RETRY_DELAYS)) as source:
        assert (await source.receive()).quarantined


async def test_a_receive_that_is_cancelled_on_the_way_to_quarantine_loses_nothing(url: str, queue: str) -> None:
    publish(url, work_queue(queue), "e1")
    for _ in range(2):
        with channel(url) as broker:  # closed without an ack, as by a crash
            wait_until(lambda: broker.basic_get(queue)[0] is not None, bound=30, what="it comes")
    async with aclosing(RabbitMQSource(url, queue=queue, retry_delays=RETRY_DELAYS)) as source:
        moves = source._republisher._turn
        async with moves:  # the move has to wait
            receiving = asyncio.create_task(source.receive())

            async def is_moving() -> bool:
                return bool(moves._waiters)

            await eventually(is_moving, within=30)
            receiving.cancel()
            await asyncio.wait({receiving})
        async with asyncio.timeout(30):
            delivery = await source.receive()
        assert (delivery.incoming.event_id, delivery.quarantined) == ("e1", True)


@pytest.mark.parametrize("part", ["wait.1s", "quarantine"])
async def test_a_queue_for_retries_or_quarantine_must_be_as_declared(url: str, queue: str, part: str) -> None:
    with channel(url) as broker:
        broker.queue_declare(f"{queue}.{part}", durable=True)
        try:
            async with aclosing(RabbitMQSource(url, queue=queue, retry_delays=["1s"])) as source:
                with pytest.raises(ConfigurationError, match=rf"{part}.*change the configuration"):
                    await source.connect()
        finally:
            broker.queue_delete(f"{queue}.{part}")
