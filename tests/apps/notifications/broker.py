"""The broker between the layers, seen and meddled with by a client that is not ours."""

from __future__ import annotations

import json
from typing import Any

import pika
from pika.exceptions import ChannelClosedByBroker

from apps.notifications.words import Audience
from tests.integration.rabbitmq.consumer import Taken, channel, take_all
from tests.servers.waiting import wait_until

WAITS = ("1s", "5s", "30s", "3min", "15min", "1h")
AROUND = ("", ".dlq", ".suspects", *(f".wait.{wait}" for wait in WAITS))


def forget(url: str) -> None:
    """Delete every queue of the application."""
    with channel(url) as broker:
        for audience in Audience:
            for suffix in AROUND:
                broker.queue_delete(audience.queue + suffix)


def is_listened_to(url: str, queue: str) -> bool:
    """Whether it exists and somebody consumes it."""
    try:
        with channel(url) as broker:
            return int(broker.queue_declare(queue, passive=True).method.consumer_count) > 0
    except ChannelClosedByBroker:
        return False


def ready(url: str, queue: str) -> int:
    """How many messages wait in a queue that exists, not counting those that somebody has in hand."""
    with channel(url) as broker:
        return int(broker.queue_declare(queue, passive=True).method.message_count)


def wait_for_dead_letters(url: str, audience: Audience) -> list[Taken]:
    """What was given up on, once there is any; it is gone afterwards."""
    queue = f"{audience.queue}.dlq"
    wait_until(lambda: ready(url, queue) > 0, bound=90, what=f"something is in {queue}")
    return take_all(url, queue)


def bodies(url: str, audience: Audience) -> list[Any]:
    """What waits for a listener, which is gone afterwards."""
    return [json.loads(taken.body) for taken in take_all(url, audience.queue)]


def publish(url: str, audience: Audience, body: object, *, event_id: str, event_type: str) -> None:
    """A message as another producer would send it, to a queue that exists."""
    properties = pika.BasicProperties(
        message_id=event_id, type=event_type, content_type="application/json", delivery_mode=2
    )
    with channel(url) as broker:
        broker.confirm_delivery()
        broker.basic_publish(
            "notifications.exchange", audience.queue, json.dumps(body).encode(), properties, mandatory=True
        )
