"""Operator requests for pending events: select the events, count them, then ask the relays that own their lanes.

An event that was sent or deleted in the meantime is left to its relay, which skips the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.listing import EventDetail, EventFilter
from pillarbox.admin.requests import Action
from pillarbox.core.message import Status
from pillarbox.ops import bulk_actions
from pillarbox.ops.bulk_actions import Scope

PAGE = 20_000
"""Events per statement while they are selected."""
BATCH = 1000
"""Requests per statement."""

Pending = Sequence[tuple[str, str]]
"""Pending events, as event id and destination, the oldest first."""


async def select(store: AdminStore, wanted: EventFilter) -> Pending:
    """Return all pending events that match, page by page."""
    found: list[tuple[str, str]] = []
    wanted, after = replace(wanted, undelivered=True), None
    while True:
        page = await store.admin.events.list(wanted, limit=PAGE, after=after)
        # `dead retry` and `dead discard` are for blocked events, unless the filter asks for them.
        pending = (one for one in page.events if one.status is not Status.FAILED or wanted.blocked)
        found += [(event.event_id, event.destination) for event in pending]
        if (after := page.after) is None:
            return found[::-1]


async def select_by_id(store: AdminStore, event_ids: Iterable[str]) -> Pending:
    """Return those of these events that are pending, once for each destination."""
    stories = [await store.admin.events.show(event_id) for event_id in dict.fromkeys(event_ids)]
    return [(one.event_id, one.destination) for story in stories for one in story.events if is_pending(one)]


def is_pending(event: EventDetail) -> bool:
    """Whether a relay still has the event. A blocked event counts, a dead letter does not."""
    return event.status is not Status.PUBLISHED and event.dead_letter_id is None


async def request_all(
    store: AdminStore, action: Action, pending: Pending, scope: Scope, *, delay: float = 0, by: str
) -> int:
    """Request an action for each event; several events are one bulk action. Returns the number of requests."""
    bulk_action: int | None = None
    if len(pending) > 1:
        more = {"delay": delay} if action == "reschedule" else {}
        bulk_action = await bulk_actions.begin(store, action, scope, count=len(pending), by=by, **more)
    return await add(store, action, pending, delay=delay, by=by, bulk_action=bulk_action)


async def add(
    store: AdminStore, action: Action, pending: Pending, *, delay: float = 0, by: str, bulk_action: int | None
) -> int:
    """Add a request for each event, in batches, as part of a bulk action. Returns the number of requests."""
    for start in range(0, len(pending), BATCH):
        await store.admin.requests.add(
            action, pending[start : start + BATCH], delay=delay, by=by, bulk_action=bulk_action
        )
    return len(pending)


async def has_running_relay(store: AdminStore) -> bool:
    """Whether a relay is running that can execute requests."""
    return any(relay.lease > 0 for relay in await store.admin.inspection.relays())
