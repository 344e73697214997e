"""Operator requests for pending events: select the events, count them, then ask the relays that own their lanes.

An event that was sent or deleted in the meantime is left to its relay, which skips the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.listing import EventDetail, EventFilter, ListedEvent
from pillarbox.admin.requests import Action
from pillarbox.admin.states import EventState
from pillarbox.core.message import Status
from pillarbox.ops import bulk_actions
from pillarbox.ops.bulk_actions import Scope
from pillarbox.ops.dead_letter_groups import fingerprint
from pillarbox.ops.selection_summary import NOTHING_SELECTED, Summary, SummaryBuilder, digest_of

PAGE = 20_000
"""Events per statement while they are selected."""
BATCH = 1000
"""Requests per statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Selected pending events."""

    events: Sequence[tuple[str, str]] = ()
    """As event id and destination, the oldest first."""
    summary: Summary = NOTHING_SELECTED
    """What they are, for a confirmation."""

    def __len__(self) -> int:
        return len(self.events)

    async def digest(self) -> str:
        """What identifies these events."""
        return await digest_of(self.events)


async def select(store: AdminStore, wanted: EventFilter, *, group: str | None = None) -> Pending:
    """Return all pending events that match, page by page. group: the fingerprint of type, destination and reason."""
    found: list[tuple[str, str]] = []
    built = SummaryBuilder()
    wanted, after = replace(wanted, undelivered=True), None
    while True:
        page = await store.admin.events.list(wanted, limit=PAGE, after=after)
        # `dead retry` and `dead discard` are for blocked events, unless the filter asks for them.
        pending = [one for one in page.events if one.status is not Status.FAILED or wanted.state is EventState.BLOCKED]
        if group is not None:
            pending = await asyncio.to_thread(_members, pending, group)
        await built.add([(one, one.last_error) for one in pending])
        found += [(event.event_id, event.destination) for event in pending]
        if (after := page.after) is None:
            return Pending(events=found[::-1], summary=built.summary())


async def select_by_id(
    store: AdminStore, event_ids: Iterable[str], *, only: Collection[tuple[str, str]] | None = None
) -> Pending:
    """Return those of these events that are pending, once for each destination; only: if they are among these."""
    stories = [await store.admin.events.show(event_id) for event_id in dict.fromkeys(event_ids)]
    found = [
        one
        for story in stories
        for one in story.events
        if is_pending(one) and (only is None or (one.event_id, one.destination) in only)
    ]
    built = SummaryBuilder()
    await built.add([(one, one.last_error) for one in found])
    pairs = [(one.event_id, one.destination) for one in found]
    return Pending(events=pairs, summary=built.summary())


def _members(events: Sequence[ListedEvent], group: str) -> list[ListedEvent]:
    return [one for one in events if fingerprint(one.event_type, one.destination, one.last_error or "") == group]


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
    return await add(store, action, pending.events, delay=delay, by=by, bulk_action=bulk_action)


async def add(
    store: AdminStore,
    action: Action,
    pending: Sequence[tuple[str, str]],
    *,
    delay: float = 0,
    by: str,
    bulk_action: int | None,
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
