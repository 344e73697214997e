"""Handlers and consumers that use models."""

import os
from contextlib import suppress
from typing import Any

from django.db import DatabaseError, connection

from pillarbox import ConsumedEvent, Consumer, HandlerContext, Handlers, ReceivedEvent, open_source
from pillarbox.integrations.django import inbox, inbox_transaction

from .models import Note

handlers = Handlers()
consumer = Consumer(name="counting", transaction=inbox_transaction, inbox=inbox())


@handlers.on("order.placed", name="note")
def note(event: ReceivedEvent, context: HandlerContext) -> None:
    Note.objects.create(text=f"sync {event.event_id}")


@handlers.on("order.placed", name="anote")
async def anote(event: ReceivedEvent, context: HandlerContext) -> None:
    await Note.objects.acreate(text=f"async {event.event_id}")


@handlers.on("order.failed", name="failing")
def failing(event: ReceivedEvent, context: HandlerContext) -> None:
    raise ValueError(f"cannot handle {event.payload['why']}")


@handlers.on("connection.ended", name="ending")
def ending(event: ReceivedEvent, context: HandlerContext) -> None:
    """Leave a connection behind that the server, or the driver, has closed."""
    Note.objects.create(text=f"before {event.event_id}")
    ends = {"postgresql": "SELECT pg_terminate_backend(pg_backend_pid())", "mysql": "KILL CONNECTION_ID()"}
    if connection.vendor in ends:
        with suppress(DatabaseError), connection.cursor() as cursor:
            cursor.execute(ends[connection.vendor])
    else:
        connection.connection.close()


@consumer.on("order.counted")
def count(transaction: Any, event: ConsumedEvent) -> None:
    Note.objects.create(text=f"counted {event.event_id}")


handlers.add(consumer)

if "AMQP_URL" in os.environ:
    billing = Consumer(
        open_source(os.environ["AMQP_URL"], "billing"), name="billing", transaction=inbox_transaction, inbox=inbox()
    )

    @billing.on("order.billed")
    def bill(transaction: Any, event: ConsumedEvent) -> None:
        Note.objects.create(text=f"billed {event.event_id}")
