"""What a person asks of events that wait: chosen first, counted, and then asked of the relays that own their lanes.

What moves in between is left to its relay, which finds nothing to do and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.listing import EventDetail, EventFilter
from pillarbox.admin.requests import Action
from pillarbox.core.message import Status
from pillarbox.ops import acts
from pillarbox.ops.acts import Scope

LOOK = 20_000
"""Events per statement while they are chosen."""
BITE = 1000
"""Requests per statement."""

Waiting = Sequence[tuple[str, str]]
"""Events that wait, each for one destination, the oldest first."""


async def choose(store: AdminStore, wanted: EventFilter) -> Waiting:
    """All events that wait and fit, page by page."""
    found: list[tuple[str, str]] = []
    wanted, after = replace(wanted, undelivered=True), None
    while True:
        page = await store.admin.events.list(wanted, limit=LOOK, after=after)
        # What holds its key was given up: it is decided about, unless it was asked for by that.
        waiting = (one for one in page.events if one.status is not Status.FAILED or wanted.blocked)
        found += [(event.event_id, event.destination) for event in waiting]
        if (after := page.after) is None:
            return found[::-1]


async def named(store: AdminStore, event_ids: Iterable[str]) -> Waiting:
    """Those of these events that wait, for each of their destinations."""
    stories = [await store.admin.events.show(event_id) for event_id in dict.fromkeys(event_ids)]
    return [(one.event_id, one.destination) for story in stories for one in story.events if waits(one)]


def waits(event: EventDetail) -> bool:
    """A dead letter does not, and what holds its key until a person decides does."""
    return event.status is not Status.PUBLISHED and event.letter is None


async def ask(store: AdminStore, action: Action, waiting: Waiting, scope: Scope, *, delay: float = 0, by: str) -> int:
    """Ask it of each; what is asked of many is one act. Returns how many requests were made."""
    more = {"delay": delay} if action == "reschedule" else {}
    act = await acts.begin(store, action, scope, count=len(waiting), by=by, **more) if len(waiting) > 1 else None
    return await request(store, action, waiting, delay=delay, by=by, act=act)


async def request(
    store: AdminStore, action: Action, waiting: Waiting, *, delay: float = 0, by: str, act: int | None
) -> int:
    """Ask it of each, in bites, as a part of an act; returns how many requests were made."""
    for start in range(0, len(waiting), BITE):
        await store.admin.requests.add(action, waiting[start : start + BITE], delay=delay, by=by, act=act)
    return len(waiting)


async def anybody(store: AdminStore) -> bool:
    """Is there a relay that could do it?"""
    return any(relay.lease > 0 for relay in await store.admin.inspection.relays())
