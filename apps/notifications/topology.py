"""What shall exist on RabbitMQ, as the listeners declare it.

What must stay true: `pillarbox.toml` says the same for the relay. Whoever comes first declares, and the broker refuses
whoever comes second with something else. A test has both orders.
"""

from __future__ import annotations

from apps.notifications.words import Audience
from pillarbox.transports.rabbitmq import Binding, DeadLetter, Exchange, Queue, RabbitMQSource, RabbitMQTransport

EXCHANGE = Exchange(name="notifications.exchange", type="topic")
DEAD_LETTERS = "notifications.dlx"


def queue_of(audience: Audience) -> Queue:
    """Durable, without a limit of time or length; what is given up on goes to the queue with `.dlq` at its end."""
    return Queue(
        name=audience.queue,
        bindings=[Binding(exchange=EXCHANGE.name, routing_key=audience.queue)],
        dead_letter=DeadLetter(exchange=DEAD_LETTERS, queue=f"{audience.queue}.dlq"),
        delivery_limit=20,
    )


def source_of(audience: Audience, url: str, *, prefetch: int = 10) -> RabbitMQSource:
    """The queue of an audience, to be worked off. Raises ConfigurationError for a URL that is none."""
    return RabbitMQSource(url, queue=queue_of(audience), exchanges=[EXCHANGE], prefetch=prefetch)


def open_broker(url: str) -> RabbitMQTransport:
    """The broker with all queues, for whoever declares them. Raises ConfigurationError for a URL that is none."""
    return RabbitMQTransport(url, exchanges=[EXCHANGE], queues=[queue_of(audience) for audience in Audience])
