"""Three handlers: one that fails at times, one that is slow, one that always succeeds.

Each writes the result to the ledger before it returns to the relay.
"""

from __future__ import annotations

import asyncio
from zlib import crc32

from pillarbox.core.errors import PermanentError
from pillarbox.ops.demo.ledger import Append, DemoLedgerEntry, Status
from pillarbox.transports.handlers import HandlerContext, Handlers, ReceivedEvent

SLOW = 0.05


def make_handlers(append: Append) -> Handlers:
    """Return handlers that write to the ledger with `append`."""
    handlers = Handlers()

    def write(event: ReceivedEvent, context: HandlerContext, status: Status) -> None:
        append(DemoLedgerEntry(context.destination, status, str(event.aggregate_id), event.event_id))

    @handlers.on("order.*", name="mailer")
    async def mail(event: ReceivedEvent, context: HandlerContext) -> None:
        # A checksum of the id, so that an event fails in the same way after a redelivery.
        checksum = crc32(event.event_id.encode())
        if checksum % 20 == 0 and context.attempt <= (2 if checksum % 60 == 0 else 1):
            write(event, context, "failed")
            raise ConnectionError("the mail server closed the connection")
        if checksum % 500 == 1:
            write(event, context, "rejected")
            raise PermanentError(f"order {event.aggregate_id} has no mail address")
        write(event, context, "handled")

    @handlers.on("order.*", name="warehouse")
    async def pick(event: ReceivedEvent, context: HandlerContext) -> None:
        await asyncio.sleep(SLOW)
        write(event, context, "handled")

    @handlers.on("order.*", name="search")
    async def index(event: ReceivedEvent, context: HandlerContext) -> None:
        write(event, context, "handled")

    return handlers
