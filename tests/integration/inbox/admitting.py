"""Admitting by the verb that the way asks for."""

from pillarbox import Inbox
from tests.integration.record.way import Way


async def admit(
    way: Way, handle: object, event_id: str, *, consumer: str = "billing", inbox: Inbox | None = None
) -> bool:
    inbox = inbox or Inbox()
    if way.awaited:
        return await inbox.aadmit(handle, consumer, event_id)
    return inbox.admit(handle, consumer, event_id)


class Undo(Exception):
    """Raised to roll back."""
