"""Where the messages of an audience are on the broker.

On RabbitMQ: exchange, queues and bindings, as the listeners declare them. Invariant: `pillarbox.toml` defines the same
for the relay. The broker rejects a second declaration that differs from the first; a test declares in both orders.

On any other broker: a topic, subject or stream per audience, named like the queue; `any-broker.toml` is for the relay.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from apps.notifications.domain import Audience
from pillarbox import open_source
from pillarbox.adapters import Source
from pillarbox.transports.rabbitmq import Binding, DeadLetterTarget, Exchange, Queue, RabbitMQSource, RabbitMQTransport

EXCHANGE = Exchange(name="notifications.exchange", type="topic")
DEAD_LETTERS = "notifications.dlx"
GROUP = "notifications"
"""The consumer group on brokers that have groups: all listeners of an audience share its messages."""


def is_rabbitmq(url: str) -> bool:
    """Whether it is the URL of a RabbitMQ."""
    return urlsplit(url).scheme in ("amqp", "amqps")


def relay_settings(url: str) -> Path:
    """The settings file of the relay for this broker."""
    return Path(__file__).with_name("pillarbox.toml" if is_rabbitmq(url) else "any-broker.toml")


def queue_of(audience: Audience) -> Queue:
    """A durable queue without limits of time or length; its dead letters go to `<queue>.dlq`."""
    return Queue(
        name=audience.queue,
        bindings=[Binding(exchange=EXCHANGE.name, routing_key=audience.queue)],
        dead_letter=DeadLetterTarget(exchange=DEAD_LETTERS, queue=f"{audience.queue}.dlq"),
        delivery_limit=20,
    )


def source_of(audience: Audience, url: str, *, prefetch: int = 10) -> Source:
    """A source for the messages of an audience. Raises ConfigurationError for an invalid URL."""
    if not is_rabbitmq(url):
        return open_source(url, audience.queue, group=GROUP, prefetch=prefetch)
    return RabbitMQSource(url, queue=queue_of(audience), exchanges=[EXCHANGE], prefetch=prefetch)


def open_broker(url: str) -> RabbitMQTransport:
    """A transport to RabbitMQ that declares all queues. Raises ConfigurationError for an invalid URL."""
    return RabbitMQTransport(url, exchanges=[EXCHANGE], queues=[queue_of(audience) for audience in Audience])
