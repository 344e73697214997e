"""A consumer of a real broker reads CloudEvents that the official SDK has written, over its bindings for AMQP."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pika
import pytest
from cloudevents.core.bindings import amqp, rabbitmq
from cloudevents.core.v1.event import CloudEvent

from pillarbox.inbox import ConsumedEvent
from pillarbox.inbox.observations import DuplicateSkipped, EventProcessed, MessageDeadLettered
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import Queue
from tests.integration.consume.broker import declared
from tests.integration.consume.conftest import MakeShop
from tests.integration.rabbitmq.consumer import channel, publish_confirmed

WHEN = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


def event() -> CloudEvent:
    attributes: dict[str, Any] = {
        "id": "evt-ü",
        "type": "order.placed",
        "source": "/shop",
        "subject": "ORDER/42",
        "time": WHEN,
        "correlationid": "visit",
    }
    return CloudEvent({**attributes, "datacontenttype": "application/json"}, {"total": "12,50 €"})


def sent_by_amqp(message: amqp.AMQPMessage) -> tuple[dict[str, Any], bytes]:
    properties = {"content_type": message.properties["content-type"], "headers": message.application_properties}
    return properties, message.application_data


def sent_by_rabbitmq(message: rabbitmq.RabbitMQMessage) -> tuple[dict[str, Any], bytes]:
    return {"content_type": message.content_type, "headers": message.headers}, message.body


WRITTEN: dict[str, Callable[[], tuple[dict[str, Any], bytes]]] = {
    "amqp binary": lambda: sent_by_amqp(amqp.to_binary_event(event())),
    "amqp structured": lambda: sent_by_amqp(amqp.to_structured_event(event())),
    "rabbitmq binary": lambda: sent_by_rabbitmq(rabbitmq.to_binary_event(event())),
    "rabbitmq structured": lambda: sent_by_rabbitmq(rabbitmq.to_structured_event(event())),
}


def publish(url: str, queue: str, *messages: tuple[dict[str, Any], bytes]) -> None:
    with channel(url) as broker:
        declared(broker, Queue(name=queue))
        broker.confirm_delivery()
        for properties, body in messages:
            publish_confirmed(broker, "", queue, body, pika.BasicProperties(**properties))


async def test_a_cloudevent_without_message_properties_is_handled_once(
    url: str, queue: str, make_shop: MakeShop
) -> None:
    publish(url, queue, *(write() for write in WRITTEN.values()))
    shop, seen = make_shop(), list[ConsumedEvent]()

    @shop.consumer.on("order.*")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        seen.append(event)

    async with shop.running():
        await eventually(lambda: len(shop.kinds(DuplicateSkipped)) == len(WRITTEN) - 1)
    assert len(shop.kinds(EventProcessed)) == 1
    assert [one.event_id for one in seen] == ["evt-ü"]


@pytest.mark.parametrize("write", WRITTEN.values(), ids=WRITTEN)
async def test_its_attributes_and_data_arrive(url: str, queue: str, make_shop: MakeShop, write: Any) -> None:
    publish(url, queue, write())
    shop, seen = make_shop(), list[ConsumedEvent]()

    @shop.consumer.on("order.*")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        seen.append(event)

    async with shop.running():
        await eventually(lambda: bool(shop.kinds(EventProcessed)))
    [got] = seen
    assert (got.event_type, got.payload, got.content_type) == (
        "order.placed",
        {"total": "12,50 €"},
        "application/json",
    )
    assert (got.aggregate_type, got.aggregate_id, got.occurred_at) == ("ORDER", "42", WHEN)
    assert (got.correlation_id, got.cloudevent["source"]) == ("visit", "/shop")
    assert (got.messaging_system, got.destination) == ("rabbitmq", queue)


async def test_a_timestamp_of_the_broker_is_a_time(url: str, queue: str, make_shop: MakeShop) -> None:
    headers = {f"cloudEvents_{name}": value for name, value in event().get_attributes().items()}
    headers["cloudEvents_time"] = WHEN.replace(microsecond=0, tzinfo=None)  # pika writes it in whole seconds of UTC
    publish(url, queue, ({"content_type": "application/json", "headers": headers}, b"{}"))
    shop, seen = make_shop(), list[ConsumedEvent]()

    @shop.consumer.on("order.*")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        seen.append(event)

    async with shop.running():
        await eventually(lambda: bool(shop.kinds(EventProcessed)))
    assert [one.occurred_at for one in seen] == [WHEN.replace(microsecond=0)]


async def test_a_cloudevent_that_cannot_be_read_is_dead_lettered(url: str, queue: str, make_shop: MakeShop) -> None:
    publish(url, queue, ({"content_type": "application/cloudevents+json"}, b'{"specversion": "0.3"}'))
    shop = make_shop()
    shop.consumer.on("order.*")(shop.effect)
    async with shop.running():
        await eventually(lambda: bool(shop.kinds(MessageDeadLettered)))
    [dead] = shop.kinds(MessageDeadLettered)
    assert "0.3" in dead.error
