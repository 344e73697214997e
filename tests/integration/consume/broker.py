"""Reads and writes the queues of a consumer with plain pika."""

from __future__ import annotations

import json
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from pillarbox.transports.rabbitmq import Queue
from tests.integration.rabbitmq.consumer import Taken, channel, publish_confirmed, take_all

RETRY_DELAYS = ("50ms", "100ms")


def declared(broker: BlockingChannel, queue: Queue) -> int:
    """Declare the queue like the source; returns the number of ready messages."""
    found = broker.queue_declare(queue.name, durable=True, arguments=queue.all_arguments())
    return int(found.method.message_count)


def remove_queues(url: str, work: str) -> None:
    """Delete the work queue and all queues around it."""
    with channel(url) as broker:
        for name in (
            work,
            f"{work}.dlq",
            f"{work}.quarantine",
            *(f"{work}.wait.{wait}" for wait in (*RETRY_DELAYS, "2s")),
        ):
            broker.queue_delete(name)


def publish(url: str, queue: str | Queue, *event_ids: str, body: bytes | None = None, **properties: Any) -> None:
    """Publish orders like another producer."""
    work = Queue(name=queue) if isinstance(queue, str) else queue
    given: dict[str, Any] = {
        "type": "order.placed",
        "content_type": "application/json",
        "delivery_mode": 2,
    } | properties
    with channel(url) as broker:
        try:
            declared(broker, work)
        except ChannelClosedByBroker:
            broker = broker.connection.channel()  # declared like a consumer does
        broker.confirm_delivery()
        for event_id in event_ids:
            sent = pika.BasicProperties(message_id=event_id, **given)
            content = json.dumps({"id": event_id}).encode() if body is None else body
            publish_confirmed(broker, "", work.name, content, sent)


def ready(url: str, queue: str) -> int:
    """The number of ready messages in an existing queue, without unacked ones."""
    with channel(url) as broker:
        return int(broker.queue_declare(queue, passive=True).method.message_count)


def dead_letters(url: str, work: str) -> list[Taken]:
    """Remove and return all dead letters."""
    return take_all(url, f"{work}.dlq")
