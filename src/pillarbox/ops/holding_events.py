"""The events that hold their keys back."""

from __future__ import annotations

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.listing import EventDetail
from pillarbox.core.message import Status


async def find(store: AdminStore, event_id: str) -> list[tuple[str, str]]:
    """Return the event with each destination for which it holds its key back."""
    return [
        (event_id, event.destination)
        for event in (await store.admin.events.show(event_id)).events
        if event.dead_letter_id is None and (event.status is Status.FAILED or _waits_for_retry(event))
    ]


def _waits_for_retry(event: EventDetail) -> bool:
    return event.status is not Status.PUBLISHED and event.key is not None and event.next_retry_at is not None
