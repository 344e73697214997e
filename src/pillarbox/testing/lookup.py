"""Reads back from a store: the state of one event, and the dead letters with their payloads."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.admin.listing import EventDetail


class DeadLetterContent(NamedTuple):
    """A dead letter with its payload."""

    id: int
    event_id: str
    destination: str
    event_type: str
    key: str | None
    payload: bytes
    error: str
    attempts: int
    first_failed_at: datetime | None
    dead_lettered_at: datetime


async def find_event(store: AdminStore, event_id: str) -> list[EventDetail]:
    """Return one row per destination of an event, by destination: pending, delivered or dead-lettered."""
    found = await store.admin.events.show(event_id)
    return sorted(found.events, key=lambda event: event.destination)


async def dead_letters(store: AdminStore, *, limit: int = 100, before: int | None = None) -> list[DeadLetterContent]:
    """Return dead letters, the newest first."""
    admin = store.admin.dead_letters
    page = await admin.list(DeadLetterFilter(), limit=limit, before=before)
    details = {
        detail.dead_letter_id: detail for detail in await admin.details([listed.id for listed in page.dead_letters])
    }
    return [
        DeadLetterContent(
            id=listed.id,
            event_id=listed.event_id,
            destination=listed.destination,
            event_type=listed.event_type,
            key=listed.key,
            payload=details[listed.id].payload,
            error=listed.error,
            attempts=listed.attempts,
            first_failed_at=listed.first_failed_at,
            dead_lettered_at=listed.dead_lettered_at,
        )
        for listed in page.dead_letters
    ]
