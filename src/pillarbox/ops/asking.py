"""What a person asks of events that wait: chosen first, counted, and then asked of the relays that own their lanes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pillarbox.core.browsing import EventDetail, EventFilter
from pillarbox.core.message import Status
from pillarbox.core.people import Action
from pillarbox.core.store import Store

MOST = 1_000
"""Events that are asked about at once; each takes a request of its own."""
_LOOKS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Events that wait, each for one destination."""

    events: Sequence[tuple[str, str]]
    whole: bool
    """False: there may be more that fit."""

    @property
    def count(self) -> int:
        return len(self.events)


async def choose(store: Store, wanted: EventFilter, *, most: int = MOST) -> Waiting:
    """The events that wait and fit, the newest first, from a bounded number of statements."""
    found: list[tuple[str, str]] = []
    after = None
    for _ in range(_LOOKS):
        page = await store.browsing.events(wanted, limit=most, after=after)
        # What is FAILED and holds no key is a dead letter, and those are decided about: see `decisions`.
        waiting = (e for e in page.events if e.status in (Status.PENDING, Status.PROCESSING) or wanted.blocked)
        found += [(event.event_id, event.destination) for event in waiting]
        after = page.after
        if after is None or len(found) >= most:
            break
    return Waiting(events=found[:most], whole=after is None and len(found) <= most)


async def named(store: Store, event_ids: Iterable[str]) -> Waiting:
    """Those of these events that wait, for each of their destinations."""
    stories = [await store.browsing.show(event_id) for event_id in dict.fromkeys(event_ids)]
    found = [(one.event_id, one.destination) for story in stories for one in story.events if waits(one)]
    return Waiting(events=found, whole=True)


def waits(event: EventDetail) -> bool:
    """A dead letter does not, and what holds its key until a person decides does."""
    return event.status is not Status.PUBLISHED and event.letter is None


async def ask(store: Store, action: Action, waiting: Waiting, *, delay: float = 0, by: str) -> int:
    """Ask it of each; returns how many requests were made. Raises ConfigurationError for a delay that is too long."""
    for event_id, destination in waiting.events:
        await store.people.ask(action, event_id, destination, delay=delay, by=by)
    return waiting.count
