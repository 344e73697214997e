"""What a relay without a broker calls: a handler that fails at times, and a consumer with the inbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zlib import crc32

from pillarbox.inbox import Consumer, Inbox
from pillarbox.ops.drill.database import DrillTables
from pillarbox.ops.drill.ledger import ArrivalLog
from pillarbox.ops.drill.target import CONSUMER, DrillTarget
from pillarbox.retry_policies import ExponentialBackoff
from pillarbox.transports.handlers import HandlerContext, Handlers, ReceivedEvent

ONE_IN = 16
"""One event in so many is rejected on its first delivery."""
RETRY = ExponentialBackoff(base="100ms", max_delay="1s", jitter="none", max_attempts="unlimited")


class NotNow(Exception):
    """A handler rejects an event on its first delivery."""


def make_consumer(target: DrillTarget, source: Any = None) -> Consumer:
    """Return the consumer of a drill: it applies one effect per event, in the transaction of the inbox."""
    tables = DrillTables(target)
    consumer = Consumer(
        source,
        name=CONSUMER,
        transaction=tables.consumer_transactions(),
        inbox=Inbox(tables=target.settings.store.tables),
        retry=RETRY,
    )
    if tables.producer().awaited:

        @consumer.on("*")
        async def apply(connection: Any, event: Any) -> None:
            await tables.arun(connection, "write_effect", event.event_id)
    else:

        @consumer.on("*")
        def apply_blocking(connection: Any, event: Any) -> None:
            tables.run(connection, "write_effect", event.event_id)

    return consumer


def make_handlers(target: DrillTarget, folder: Path) -> Handlers:
    """Return the handlers of a relay: a delivery is complete, and logged, when the effect is committed."""
    arrivals, consumer, handlers = ArrivalLog(folder), make_consumer(target), Handlers()

    @handlers.on("*", name=CONSUMER)
    async def receive(event: ReceivedEvent, context: HandlerContext) -> None:
        if context.attempt == 1 and crc32(event.event_id.encode()) % ONE_IN == 0:
            raise NotNow("rejected on its first delivery")
        await consumer.handle(event, context)
        arrivals.add(event.event_id)

    return handlers
