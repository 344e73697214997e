"""Admits with the method that fits the connection."""

from typing import Any

from pillarbox import Inbox
from tests.integration.record.way import Way


async def admit(
    way: Way, connection: Any, event_id: str, *, consumer: str = "billing", inbox: Inbox | None = None
) -> bool:
    inbox = inbox or Inbox()
    if way.awaited:
        return await inbox.aadmit(connection, consumer, event_id)
    return inbox.admit(connection, consumer, event_id)


class Undo(Exception):
    """Raised to roll back."""
