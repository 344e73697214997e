"""The work queue of a consumer: its delivery limit, and declarations by relay and consumer."""

from contextlib import aclosing
from typing import Any

import pytest

from pillarbox import ConfigurationError
from pillarbox.inbox.observations import EventProcessed
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import Queue, RabbitMQSource, RabbitMQTransport
from pillarbox.transports.rabbitmq.topology import DELIVERY_LIMIT, work_queue
from tests.integration.consume.broker import WAITS, dead_letters, declared, publish, ready
from tests.integration.consume.conftest import MakeShop
from tests.integration.rabbitmq.consumer import channel
from tests.servers.waiting import wait_until


async def test_the_broker_dead_letters_a_message_after_its_delivery_limit(url: str, queue: str) -> None:
    async with aclosing(RabbitMQSource(url, queue=queue, waits=WAITS)) as source:
        await source.declare_topology()
    publish(url, work_queue(queue), "e1")
    for _ in range(DELIVERY_LIMIT + 1):
        # Like a client that crashes on receipt: its connection closes without an ack.
        with channel(url) as broker:
            wait_until(lambda: broker.basic_get(queue)[0] is not None, bound=30, what="it comes")
    wait_until(lambda: ready(url, f"{queue}.dlq") == 1, bound=30, what="it is a dead letter")
    [letter] = dead_letters(url, queue)
    headers: dict[str, Any] = dict(letter.properties.headers or {})
    [death] = headers["x-death"]
    assert (letter.properties.message_id, death["reason"]) == ("e1", "delivery_limit")


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


async def test_any_other_difference_is_an_error_with_advice(url: str, queue: str) -> None:
    with channel(url) as broker:
        declared(broker, Queue(name=queue, type="classic"))
    async with aclosing(RabbitMQSource(url, queue=queue, waits=WAITS)) as source:
        with pytest.raises(ConfigurationError, match=r"x-queue-type.*change the configuration"):
            await source.declare_topology()
