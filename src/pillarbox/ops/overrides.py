"""What operators do to destinations, relays and keys: the same for the command line and the console."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.admin.listing import EventDetail, EventFilter
from pillarbox.admin.overview import RelayView
from pillarbox.core.errors import ConfigurationError, RecordError
from pillarbox.core.event import LONGEST_TEXT, check_text
from pillarbox.core.lane import EVERY_RELAY
from pillarbox.core.message import Status
from pillarbox.core.statistics import KEPT, OUTBOX
from pillarbox.core.store import EVERYWHERE, Forced
from pillarbox.ops.flow import DestinationView, destinations_of

NEWEST = 500
"""The newest pending events and dead letters whose destinations are listed."""
MOST_NAMES = 20
"""Known names that an error lists at most."""


class UnknownDestinationError(ConfigurationError):
    """There is no destination of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Destinations:
    """All known destinations."""

    paused: bool
    """An operator paused all of them."""
    views: list[DestinationView]


async def destinations(store: AdminStore) -> Destinations:
    """Return the state and the overrides of all known destinations."""
    overrides = await store.destinations.overrides()
    seen = await store.admin.inspection.overview()
    paused = any(row.destination == EVERYWHERE and row.paused for row in overrides)
    return Destinations(
        paused=paused, views=destinations_of(seen.relays, overrides, known=await known_destinations(store))
    )


async def known_destinations(store: AdminStore) -> set[str]:
    """Return the destinations of parked events, of the newest pending events and of the newest dead letters.

    These are known even if no relay is running.
    """
    parked = await store.messages.parked_destinations(range(store.lanes.count))
    waiting = await store.admin.events.list(EventFilter(undelivered=True), limit=NEWEST)
    dead_letters = await store.admin.dead_letters.list(DeadLetterFilter(), limit=NEWEST)
    newest = {one.destination for one in waiting.events} | {one.destination for one in dead_letters.dead_letters}
    return {*parked, *newest} - {""}


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationOverrides:
    """The overrides that one operator sets.

    A name must be known to the settings, a running relay, an earlier override, pending events, dead letters, or the
    statistics of the last day. All names are checked before anything is set. Every method raises ConfigurationError for
    an invalid name and for `EVERYWHERE`, which is reserved; UnknownDestinationError for an unknown name.
    """

    store: AdminStore
    by: str
    configured: Collection[str]
    """Destinations of the settings."""
    force: bool = False
    """Accept unknown names, for destinations that do not exist yet."""

    async def pause(self, names: Sequence[str]) -> None:
        """Pause these destinations, or all if none is named; their events stay pending."""
        await self._check(names)
        for name in names or [EVERYWHERE]:
            await self.store.admin.requests.override(name, paused=True, by=self.by)

    async def resume(self, names: Sequence[str]) -> None:
        """Resume these destinations; if none is named, end the pause of all."""
        await self._check(names)
        for name in names or [EVERYWHERE]:
            await self.store.admin.requests.override(name, paused=False, by=self.by)

    async def limit(self, name: str, rate: float | None) -> None:
        """Limit messages per second, of all relays together; None restores the limit of the settings."""
        await self._check([name])
        await self.store.admin.requests.override(name, rate_limit=rate, by=self.by)

    async def force_breaker(self, name: str, state: Forced | None) -> None:
        """Force a breaker open or closed; None lets the relay decide."""
        await self._check([name])
        await self.store.admin.requests.override(name, breaker=state, by=self.by)

    async def _check(self, names: Sequence[str]) -> None:
        for name in names:
            _check_name("destination", name, every=EVERYWHERE)
        if self.force or not names:
            return
        known = {*self.configured, *(view.name for view in (await destinations(self.store)).views)}
        if not known.issuperset(names):
            # The statistics of a day are large, so that they are read only for an otherwise unknown name.
            known |= {sample.destination for sample in await self.store.admin.samples.since(KEPT)} - {OUTBOX}
        for name in names:
            if name not in known:
                raise UnknownDestinationError(f"there is no destination {name!r}{_nearest(name, sorted(known))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayAtWork:
    """A relay, and how many lanes it owns."""

    view: RelayView
    lanes: int


async def relays(store: AdminStore) -> list[RelayAtWork]:
    """Return running relays, and crashed ones that no other relay has taken over yet."""
    seen = await store.admin.inspection.overview()
    lanes = Counter(lane.owner for lane in seen.lanes)
    return [RelayAtWork(view=relay, lanes=lanes[relay.id]) for relay in seen.relays]


async def drain(store: AdminStore, names: Sequence[str], *, by: str) -> list[str]:
    """Request that these relays, by id or name, or all if none is named, drain; returns the ids of the relays.

    Raises ConfigurationError for an invalid name and for `EVERY_RELAY`, which is reserved.
    """
    for name in names:
        _check_name("relay", name, every=EVERY_RELAY)
    asked = [one for name in (names or [EVERY_RELAY]) for one in await store.admin.requests.drain(name, by=by)]
    return list(dict.fromkeys(asked))


async def dead_letter(store: AdminStore, event_id: str, *, by: str) -> list[str]:
    """Request that an event that holds its key back is dead-lettered; returns the destinations of the requests."""
    asked = await heads(store, event_id)
    await store.admin.requests.add("dead_letter", asked, by=by)
    return [destination for _, destination in asked]


async def heads(store: AdminStore, event_id: str) -> list[tuple[str, str]]:
    """Return the event with each destination for which it holds its key back."""
    return [
        (event_id, event.destination)
        for event in (await store.admin.events.show(event_id)).events
        if event.dead_letter_id is None and (event.status is Status.FAILED or _waits_for_retry(event))
    ]


def _waits_for_retry(event: EventDetail) -> bool:
    return event.status is not Status.PUBLISHED and event.key is not None and event.next_retry_at is not None


def _check_name(kind: str, name: str, *, every: str) -> None:
    if name == every:
        raise ConfigurationError(f"{name!r} is not the name of a {kind}: leave the name out to select all")
    try:
        check_text(f"the name of a {kind}", name, LONGEST_TEXT)
    except RecordError as error:
        raise ConfigurationError(str(error)) from None


def _nearest(name: str, known: Sequence[str]) -> str:
    near = "".join(f"; did you mean {one!r}?" for one in get_close_matches(name, known, n=1))
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    return f"{near or ';'} there are {', '.join(known[:MOST_NAMES])}{more}" if known else "; none is known yet"
