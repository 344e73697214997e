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
    story = await store.admin.events.show(event_id)
    return sorted(story.events, key=lambda event: event.destination)


async def dead_letters(store: AdminStore, *, limit: int = 100, before: int | None = None) -> list[DeadLetterContent]:
    """Return dead letters, the newest first."""
    letters = store.admin.dead_letters
    page = await letters.list(DeadLetterFilter(), limit=limit, before=before)
    details = {
        detail.dead_letter_id: detail for detail in await letters.details([letter.id for letter in page.dead_letters])
    }
    return [
        DeadLetterContent(
            id=letter.id,
            event_id=letter.event_id,
            destination=letter.destination,
            event_type=letter.event_type,
            key=letter.key,
            payload=details[letter.id].payload,
            error=letter.error,
            attempts=letter.attempts,
            first_failed_at=letter.first_failed_at,
            dead_lettered_at=letter.dead_lettered_at,
        )
        for letter in page.dead_letters
    ]
