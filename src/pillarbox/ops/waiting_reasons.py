"""Why an event waits: for an earlier event of its key, or for its destination."""

from __future__ import annotations

from collections.abc import Iterator

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.keys import FirstPending, QueueView
from pillarbox.admin.listing import EventDetail, EventReport, Position
from pillarbox.core.message import Status
from pillarbox.core.store import EVERYWHERE
from pillarbox.ops.health import DestinationView, destinations_of
from pillarbox.relay.routing import rate_text

NEIGHBOURS = 5
"""Events of the same key that are shown before and after an event."""
MAX_DESTINATIONS = 20
"""Destinations that are shown for an event without a route."""
_WAITING = (Status.PENDING, Status.PROCESSING)


def place(detail: EventDetail) -> Position:
    return Position(detail.recorded_at, detail.id, detail.destination)


async def queue_of(store: AdminStore, detail: EventDetail) -> QueueView:
    """Return the event that this one waits for, if it is pending, and its neighbours in the key, in one statement."""
    if detail.key is None:
        return QueueView(None, [])
    queue = await store.admin.keys.queue(detail.key, place(detail), limit=NEIGHBOURS)
    return queue if detail.status in _WAITING else queue._replace(first=None)


async def earlier_events(store: AdminStore, story: EventReport) -> list[FirstPending]:
    """Return the earlier event that an event waits for, for each destination."""
    return [first for one in story.events if (first := (await queue_of(store, one)).first) is not None]


async def unavailable_destinations(store: AdminStore, story: EventReport) -> list[DestinationView]:
    """Return the destinations of a pending event that are unavailable, paused or rate-limited.

    An event without a route waits for every destination as long as none is available.
    """
    names = {one.destination for one in story.events if one.status in _WAITING}
    if not names:
        return []
    overrides = await store.destinations.overrides()
    if any(row.destination == EVERYWHERE and row.paused for row in overrides):
        return [_paused(name) for name in sorted(names)]
    relays = await store.admin.inspection.relays()
    views = destinations_of(relays, overrides)
    with_breakers = [view for view in views if any(view.name in relay.breakers for relay in relays if relay.lease > 0)]
    if "" in names and not any(view.is_available for view in with_breakers):
        names.update(view.name for view in with_breakers[:MAX_DESTINATIONS])
    return [view for view in views if view.name in names and (not view.is_available or view.rate_limit is not None)]


def waits_for(view: DestinationView) -> str:
    """Describe a destination that an event waits for, with the reason."""
    return f"{view.name or 'every destination'} ({', '.join(_reasons(view))})"


def _paused(name: str) -> DestinationView:
    return DestinationView(name=name, paused=True, forced=True)


def _reasons(view: DestinationView) -> Iterator[str]:
    if view.paused:
        yield "paused by an operator"
    elif view.fails:
        yield "breaker forced closed by an operator, sends fail"
    elif view.breaker != "closed":
        yield f"breaker {'forced ' if view.forced else ''}{view.breaker}{' by an operator' if view.forced else ''}"
    if view.rate_limit is not None:
        yield f"at most {rate_text(view.rate_limit)}"
