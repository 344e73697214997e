"""The known destinations and the overrides that operators set: the same for the command line and the console."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.admin.listing import EventFilter
from pillarbox.core.errors import UnknownDestinationError
from pillarbox.core.statistics import OUTBOX, SAMPLE_RETENTION
from pillarbox.core.store import EVERYWHERE, ForcedBreakerState
from pillarbox.ops.health import DestinationView, destinations_of
from pillarbox.ops.names import check_name

NEWEST = 500
"""The newest pending events and dead letters whose destinations are listed."""
MOST_NAMES = 20
"""Known names that an error lists at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationList:
    """All known destinations."""

    paused: bool
    """An operator paused all of them."""
    views: list[DestinationView]


async def list_destinations(store: AdminStore) -> DestinationList:
    """Return the state and the overrides of all known destinations."""
    overrides = await store.destinations.overrides()
    seen = await store.admin.inspection.overview()
    paused = any(row.destination == EVERYWHERE and row.paused for row in overrides)
    return DestinationList(
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

    async def force_breaker(self, name: str, state: ForcedBreakerState | None) -> None:
        """Force a breaker open or closed; None lets the relay decide."""
        await self._check([name])
        await self.store.admin.requests.override(name, breaker=state, by=self.by)

    async def _check(self, names: Sequence[str]) -> None:
        for name in names:
            check_name("destination", name, every=EVERYWHERE)
        if self.force or not names:
            return
        # Events without a route yet are reported under the name "", which is no destination.
        known = {*self.configured, *(view.name for view in (await list_destinations(self.store)).views)} - {""}
        if not known.issuperset(names):
            # The statistics of a day are large, so that they are read only for an otherwise unknown name.
            samples = await self.store.admin.samples.since(SAMPLE_RETENTION)
            known |= {sample.destination for sample in samples} - {OUTBOX, ""}
        for name in names:
            if name not in known:
                raise UnknownDestinationError(f"there is no destination {name!r}{_nearest(name, sorted(known))}")


def _nearest(name: str, known: Sequence[str]) -> str:
    near = "".join(f"; did you mean {one!r}?" for one in get_close_matches(name, known, n=1))
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    return f"{near or ';'} there are {', '.join(known[:MOST_NAMES])}{more}" if known else "; none is known yet"
