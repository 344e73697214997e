"""Reads and writes the queues of the application with plain pika."""

from __future__ import annotations

import json
from typing import Any

import pika
from pika.exceptions import ChannelClosedByBroker

from apps.notifications.domain import Audience
from tests.integration.rabbitmq.consumer import Taken, channel, publish_confirmed, take_all
from tests.servers.waiting import wait_until

WAITS = ("1s", "5s", "30s", "3min", "15min", "1h")
AROUND = ("", ".dlq", ".quarantine", *(f".wait.{wait}" for wait in WAITS))


def delete_queues(url: str) -> None:
    """Delete every queue of the application."""
    with channel(url) as broker:
        for audience in Audience:
            for suffix in AROUND:
                broker.queue_delete(audience.queue + suffix)


def has_consumer(url: str, queue: str) -> bool:
    """Whether the queue exists and has a consumer."""
    try:
        with channel(url) as broker:
            return int(broker.queue_declare(queue, passive=True).method.consumer_count) > 0
    except ChannelClosedByBroker:
        return False


def ready(url: str, queue: str) -> int:
    """The number of ready messages in an existing queue, without unacked ones."""
    with channel(url) as broker:
        return int(broker.queue_declare(queue, passive=True).method.message_count)


def wait_for_dead_letters(url: str, audience: Audience) -> list[Taken]:
    """Wait for dead letters, and remove them from the queue."""
    queue = f"{audience.queue}.dlq"
    wait_until(lambda: ready(url, queue) > 0, bound=90, what=f"a message in {queue}")
    return take_all(url, queue)


def bodies(url: str, audience: Audience) -> list[Any]:
    """The bodies of all ready messages; removes them from the queue."""
    return [json.loads(taken.body) for taken in take_all(url, audience.queue)]


def publish(url: str, audience: Audience, body: object, *, event_id: str, event_type: str) -> None:
    """Publish a message as another producer would, to an existing queue."""
    properties = pika.BasicProperties(
        message_id=event_id, type=event_type, content_type="application/json", delivery_mode=2
    )
    with channel(url) as broker:
        broker.confirm_delivery()
        publish_confirmed(broker, "notifications.exchange", audience.queue, json.dumps(body).encode(), properties)
