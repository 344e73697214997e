"""A consumer that bills in its own span and records a caused event; it runs in its own folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from opentelemetry.trace import get_tracer

from pillarbox import Consumer, Event, Outbox
from pillarbox.inbox import ConsumedEvent
from pillarbox.transports.rabbitmq import RabbitMQSource


@contextmanager
def transaction() -> Iterator[Any]:
    with psycopg.connect(os.environ["DATABASE"]) as connection:
        yield connection


consumer = Consumer(
    RabbitMQSource(os.environ["BROKER"], queue=os.environ["QUEUE"]), name="billing", transaction=transaction
)


@consumer.on("order.placed")
def bill(connection: Any, event: ConsumedEvent) -> None:
    with get_tracer("billing").start_as_current_span("bill"):
        headers = event.headers
        context = [headers.get("traceparent"), headers.get("tracestate")]
        connection.execute("INSERT INTO effect VALUES (%s, %s, %s)", [event.event_id, *context])
        Outbox().record(connection, Event("order.billed", {}, destination="later", event_id="billed").caused_by(event))
