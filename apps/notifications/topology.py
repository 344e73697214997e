"""Exchange, queues and bindings on RabbitMQ, as the listeners declare them.

Invariant: `pillarbox.toml` defines the same for the relay. The broker rejects a second declaration that differs from
the first; a test declares in both orders.
"""

from __future__ import annotations

from apps.notifications.domain import Audience
from pillarbox.transports.rabbitmq import Binding, DeadLetter, Exchange, Queue, RabbitMQSource, RabbitMQTransport

EXCHANGE = Exchange(name="notifications.exchange", type="topic")
DEAD_LETTERS = "notifications.dlx"


def queue_of(audience: Audience) -> Queue:
    """A durable queue without limits of time or length; its dead letters go to `<queue>.dlq`."""
    return Queue(
        name=audience.queue,
        bindings=[Binding(exchange=EXCHANGE.name, routing_key=audience.queue)],
        dead_letter=DeadLetter(exchange=DEAD_LETTERS, queue=f"{audience.queue}.dlq"),
        delivery_limit=20,
    )


def source_of(audience: Audience, url: str, *, prefetch: int = 10) -> RabbitMQSource:
    """A source for the queue of an audience. Raises ConfigurationError for an invalid URL."""
    return RabbitMQSource(url, queue=queue_of(audience), exchanges=[EXCHANGE], prefetch=prefetch)


def open_broker(url: str) -> RabbitMQTransport:
    """A transport that declares all queues. Raises ConfigurationError for an invalid URL."""
    return RabbitMQTransport(url, exchanges=[EXCHANGE], queues=[queue_of(audience) for audience in Audience])
