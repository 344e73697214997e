"""validation-service: UPLOADED → VALIDATED, and records DocumentValidated."""

from __future__ import annotations

from sqlalchemy import Connection, Engine

from apps.ingestion import events
from apps.ingestion.consumers.step import take_step
from apps.ingestion.documents import Status
from pillarbox import Consumer, Outbox
from pillarbox.inbox import ConsumedEvent
from pillarbox.telemetry.opentelemetry import ConsumerTracing
from pillarbox.transports.rabbitmq import RabbitMQSource

NAME = "validation-service"


def validation(engine: Engine, source: RabbitMQSource | None = None) -> Consumer:
    """The consumer of a queue or, without a source, a handler of the embedded relay."""
    consumer = Consumer(source, name=NAME, transaction=engine, body_fields=events.FIELDS, around=ConsumerTracing())
    outbox = Outbox()

    @consumer.on(events.UPLOADED)
    def validate(connection: Connection, event: ConsumedEvent) -> None:
        document = take_step(connection, event, to=Status.VALIDATED, by=NAME)
        outbox.record(connection, events.document_validated(document).caused_by(event))

    return consumer
