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

LOOKED = 500
"""Events that wait, and dead letters, whose destinations are looked at, the newest."""
TOLD = 20
"""Known names that a refusal lists at most."""


class UnknownDestination(ConfigurationError):
    """Nobody knows a destination of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Destinations:
    """Every destination that anybody has something to say about."""

    paused: bool
    """A person paused them all."""
    views: list[DestinationView]


async def destinations(store: AdminStore) -> Destinations:
    """How destinations fare, and what people set for them."""
    steering = await store.destinations.overrides()
    seen = await store.admin.inspection.overview()
    paused = any(row.destination == EVERYWHERE and row.paused for row in steering)
    return Destinations(paused=paused, views=destinations_of(seen.relays, steering, met=await met(store)))


async def met(store: AdminStore) -> set[str]:
    """Destinations for which something was put aside, or that are among the newest that wait or were given up on:
    also where no relay lives that could tell."""
    aside = await store.messages.parked_destinations(range(store.lanes.count))
    waiting = await store.admin.events.list(EventFilter(undelivered=True), limit=LOOKED)
    letters = await store.admin.dead_letters.list(DeadLetterFilter(), limit=LOOKED)
    newest = {one.destination for one in waiting.events} | {one.destination for one in letters.letters}
    return {*aside, *newest} - {""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Helm:
    """One person's hand on the destinations.

    A name must be a clean one that somebody knows: the settings, a relay that lives, what was set or noted before,
    events that wait or were given up on, or the figures of the last day. All names are looked at before anything is
    set. Every verb raises ConfigurationError for what is no name, and for `EVERYWHERE`, which nobody may write;
    UnknownDestination for a name that nobody knows.
    """

    store: AdminStore
    by: str
    configured: Collection[str]
    """Destinations that the settings name."""
    force: bool = False
    """Take names that nobody knows: destinations that will come."""

    async def pause(self, names: Sequence[str]) -> None:
        """Hold these destinations, or all of them if none is named; what waits for them stays."""
        await self._check(names)
        for name in names or [EVERYWHERE]:
            await self.store.admin.requests.override(name, paused=True, by=self.by)

    async def resume(self, names: Sequence[str]) -> None:
        """Let these destinations go on; if none is named, end the pause of all."""
        await self._check(names)
        for name in names or [EVERYWHERE]:
            await self.store.admin.requests.override(name, paused=False, by=self.by)

    async def limit(self, name: str, rate: float | None) -> None:
        """Messages per second, of all relays together; None clears it, and the settings' own limit holds again."""
        await self._check([name])
        await self.store.admin.requests.override(name, rate_limit=rate, by=self.by)

    async def hold(self, name: str, state: Forced | None) -> None:
        """Hold a breaker open or closed, whatever happens; None leaves it to itself again."""
        await self._check([name])
        await self.store.admin.requests.override(name, breaker=state, by=self.by)

    async def _check(self, names: Sequence[str]) -> None:
        for name in names:
            _check_name("destination", name, every=EVERYWHERE)
        if self.force or not names:
            return
        known = {*self.configured, *(view.name for view in (await destinations(self.store)).views)}
        if not known.issuperset(names):
            # The figures of a day are many: they are asked only about a name that nobody else knows.
            known |= {sample.destination for sample in await self.store.admin.samples.since(KEPT)} - {OUTBOX}
        for name in names:
            if name not in known:
                raise UnknownDestination(f"no destination {name!r} is known here{_nearest(name, sorted(known))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayAtWork:
    """A relay, and how many lanes it owns."""

    view: RelayView
    lanes: int


async def relays(store: AdminStore) -> list[RelayAtWork]:
    """Every relay that lives, or whose death nobody has noticed yet."""
    seen = await store.admin.inspection.overview()
    lanes = Counter(lane.owner for lane in seen.lanes)
    return [RelayAtWork(view=relay, lanes=lanes[relay.id]) for relay in seen.relays]


async def drain(store: AdminStore, names: Sequence[str], *, by: str) -> list[str]:
    """Ask these relays, by id or name, or all that live if none is named, to drain; returns the ids that were asked.

    Raises ConfigurationError for what is no name, and for `EVERY_RELAY`, which nobody may write.
    """
    for name in names:
        _check_name("relay", name, every=EVERY_RELAY)
    asked = [one for name in (names or [EVERY_RELAY]) for one in await store.admin.requests.drain(name, by=by)]
    return list(dict.fromkeys(asked))


async def bury(store: AdminStore, event_id: str, *, by: str) -> list[str]:
    """Ask that the event which holds its key up becomes a dead letter; returns the destinations it was asked for."""
    asked = await heads(store, event_id)
    await store.admin.requests.add("bury", asked, by=by)
    return [destination for _, destination in asked]


async def heads(store: AdminStore, event_id: str) -> list[tuple[str, str]]:
    """The event, with each destination on the way to which it holds its key up."""
    return [
        (event_id, event.destination)
        for event in (await store.admin.events.show(event_id)).events
        if event.letter is None and (event.status is Status.FAILED or _waits_for_its_time(event))
    ]


def _waits_for_its_time(event: EventDetail) -> bool:
    return event.status is not Status.PUBLISHED and event.key is not None and event.next_retry_at is not None


def _check_name(kind: str, name: str, *, every: str) -> None:
    if name == every:
        raise ConfigurationError(f"{name!r} is no {kind}: what can be done to all of them is done without a name")
    try:
        check_text(f"the name of a {kind}", name, LONGEST_TEXT)
    except RecordError as error:
        raise ConfigurationError(str(error)) from None


def _nearest(name: str, known: Sequence[str]) -> str:
    near = "".join(f"; did you mean {one!r}?" for one in get_close_matches(name, known, n=1))
    more = f" and {len(known) - TOLD} more" if len(known) > TOLD else ""
    return f"{near or ';'} there are {', '.join(known[:TOLD])}{more}" if known else "; there is none at all"
