"""RabbitMQ for a benchmark: a queue of its own, and a note of when each event was confirmed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pika
from pika.exceptions import AMQPError

from pillarbox.core.clock import Duration
from pillarbox.core.transport import Outgoing, Result
from pillarbox.ops.settings.transports import TransportSettings
from pillarbox.transports.rabbitmq import Queue, RabbitMQTransport
from pillarbox.transports.rabbitmq.connection import endpoint_of

EXPIRES = 600_000
"""Milliseconds after which the broker deletes the queue of a benchmark that was killed."""


class TimedRabbitMQ(RabbitMQTransport):
    """Notes when each event was confirmed."""

    def __init__(self, url: str, **settings: Any) -> None:
        super().__init__(url, **settings)
        self.confirmed: dict[str, float] = {}

    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        results = await super().send(batch)
        now = time.monotonic()
        for one, result in zip(batch, results, strict=True):
            if result is None:
                self.confirmed[one.message.event_id] = now
        return results


class WatchedRabbitMQ(TimedRabbitMQ):
    """Remembers the first messages of a backlog, too, to send them again."""

    def __init__(self, given: TransportSettings, queue: str, *, send_timeout: Duration) -> None:
        super().__init__(
            given.url or "",
            queues=[Queue(name=queue, arguments={"x-expires": EXPIRES})],
            window=given.window,
            send_timeout=send_timeout,
            heartbeat=given.heartbeat,
            connect_timeout=given.connect_timeout,
        )
        self.kept: list[Outgoing] = []

    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        results = await super().send(batch)
        if len(batch) > len(self.kept):
            self.kept = list(batch)
        return results


def delete_queue(url: str, name: str) -> None:
    """Delete a queue with what is in it. A queue that is not there is fine; one that stays expires by itself."""
    place = endpoint_of(url)
    parameters = pika.ConnectionParameters(
        host=place.host,
        port=place.port,
        virtual_host=place.vhost,
        credentials=pika.PlainCredentials(place.user, place.password),
        ssl_options=None if place.tls is None else pika.SSLOptions(place.tls, place.host),
    )
    try:
        with pika.BlockingConnection(parameters) as connection:
            connection.channel().queue_delete(name)
    except AMQPError:
        return
