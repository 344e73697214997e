"""Reads events and dead letters back in a test, if the store lists them; ends the test as skipped otherwise.

What a test checks before that, through the protocols of the relay, is checked for every store.
"""

from __future__ import annotations

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.listing import EventDetail
from pillarbox.testing import lookup
from pillarbox.testing.conformance.capability import skip_unsupported
from pillarbox.testing.lookup import DeadLetterContent


async def find_event(store: AdminStore, event_id: str) -> list[EventDetail]:
    """See `pillarbox.testing.lookup.find_event`."""
    _skip_without_listings(store)
    return await lookup.find_event(store, event_id)


async def dead_letters(store: AdminStore, *, limit: int = 100, before: int | None = None) -> list[DeadLetterContent]:
    """See `pillarbox.testing.lookup.dead_letters`."""
    _skip_without_listings(store)
    return await lookup.dead_letters(store, limit=limit, before=before)


def _skip_without_listings(store: AdminStore) -> None:
    if not store.capabilities.listings:
        skip_unsupported("the rest of the test reads events back, and this store does not list them")
