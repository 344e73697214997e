"""enrichment-service: VALIDATED → ENRICHED."""

from __future__ import annotations

from sqlalchemy import Connection, Engine

from apps.ingestion import events
from apps.ingestion.consumers.step import take_step
from apps.ingestion.documents import Status
from pillarbox import Consumer
from pillarbox.inbox import ConsumedEvent
from pillarbox.telemetry.opentelemetry import ConsumerTracing
from pillarbox.transports.rabbitmq import RabbitMQSource

NAME = "enrichment-service"


def enrichment(engine: Engine, source: RabbitMQSource | None = None) -> Consumer:
    """The consumer of a queue or, without a source, a handler of the embedded relay."""
    consumer = Consumer(source, name=NAME, transaction=engine, body_fields=events.FIELDS, around=ConsumerTracing())

    @consumer.on(events.VALIDATED)
    def enrich(connection: Connection, event: ConsumedEvent) -> None:
        take_step(connection, event, to=Status.ENRICHED, by=NAME)

    return consumer
