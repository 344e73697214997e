"""Three handlers as services have them: one that fails now and then, one that is slow, one that just works.

Each writes down in the ledger what it did, before the relay learns of it.
"""

from __future__ import annotations

import asyncio
from zlib import crc32

from pillarbox.core.errors import PermanentError
from pillarbox.ops.demo.ledger import Entry, Note, What
from pillarbox.transports.handlers import HandlerContext, Handlers, ReceivedEvent

SLOW = 0.05


def make_handlers(note: Note) -> Handlers:
    """Handlers that write to the ledger by `note`."""
    handlers = Handlers()

    def write(event: ReceivedEvent, context: HandlerContext, what: What) -> None:
        note(Entry(context.destination, what, str(event.aggregate_id), event.event_id))

    @handlers.on("order.*", name="mailer")
    async def mail(event: ReceivedEvent, context: HandlerContext) -> None:
        luck = crc32(event.event_id.encode())
        if luck % 20 == 0 and context.attempt <= (2 if luck % 60 == 0 else 1):
            write(event, context, "failed")
            raise ConnectionError("the mail server hung up")
        if luck % 500 == 1:
            write(event, context, "refused")
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
