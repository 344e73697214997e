"""Exchange, queues and routes on RabbitMQ; `pillarbox.toml` defines the same for a separate relay.

A full queue rejects messages: the event is deferred in the outbox, and no attempt is counted. Expired messages are
dead-lettered at least once: a message leaves its queue after the dead-letter queue has confirmed it.
"""

from __future__ import annotations

from apps.ingestion.events import UPLOADED, VALIDATED
from pillarbox import Route
from pillarbox.transports.rabbitmq import Binding, DeadLetterTarget, Exchange, Queue, RabbitMQTransport

MAX_MESSAGES = 10_000
EVENTS = Exchange(name="doc.events", type="topic")


def _queue(step: str) -> Queue:
    return Queue(
        name=f"document.{step}.q",
        bindings=[Binding(exchange=EVENTS.name, routing_key=f"document.{step}")],
        max_length=MAX_MESSAGES,
        message_ttl="7 days",
        dead_letter=DeadLetterTarget(exchange="doc.events.dlx", queue=f"document.{step}.dlq"),
        delivery_limit=20,
        overflow="reject-publish",
        arguments={"x-dead-letter-strategy": "at-least-once"},
    )


UPLOADED_QUEUE = _queue("uploaded")
VALIDATED_QUEUE = _queue("validated")
QUEUES = (UPLOADED_QUEUE, VALIDATED_QUEUE)

DESTINATIONS = {
    "uploaded": RabbitMQTransport.to(exchange=EVENTS.name, routing_key="document.uploaded"),
    "validated": RabbitMQTransport.to(exchange=EVENTS.name, routing_key="document.validated"),
}
ROUTES = (Route(event_type=UPLOADED, to=["uploaded"]), Route(event_type=VALIDATED, to=["validated"]))
