"""What operators do to destinations, relays and keys: the same for the command line and the console."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pillarbox.core.lane import EVERY_RELAY
from pillarbox.core.message import Status
from pillarbox.core.overview import RelayView
from pillarbox.core.steering import EVERYWHERE, Forced
from pillarbox.core.store import Store
from pillarbox.ops.flow import DestinationView, destinations_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Destinations:
    """Every destination that anybody has something to say about."""

    paused: bool
    """A person paused them all."""
    views: list[DestinationView]


async def destinations(store: Store) -> Destinations:
    """How destinations fare, and what people set for them."""
    steering = await store.destinations.steering()
    seen = await store.inspection.overview()
    paused = any(row.destination == EVERYWHERE and row.paused for row in steering)
    return Destinations(paused=paused, views=destinations_of(seen.relays, steering))


async def pause(store: Store, names: Sequence[str], *, by: str) -> None:
    """Hold these destinations, or all of them if none is named; what waits for them stays."""
    for name in names or [EVERYWHERE]:
        await store.destinations.steer(name, paused=True, by=by)


async def resume(store: Store, names: Sequence[str], *, by: str) -> None:
    """Let these destinations go on; if none is named, end the pause of all."""
    for name in names or [EVERYWHERE]:
        await store.destinations.steer(name, paused=False, by=by)


async def limit(store: Store, name: str, rate: float | None, *, by: str) -> None:
    """Messages per second, of all relays together; None clears it, and the settings' own limit holds again."""
    await store.destinations.steer(name, rate_limit=rate, by=by)


async def force(store: Store, name: str, state: Forced | None, *, by: str) -> None:
    """Hold a breaker open or closed, whatever happens; None leaves it to itself again."""
    await store.destinations.steer(name, breaker=state, by=by)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayAtWork:
    """A relay, and how many lanes it owns."""

    view: RelayView
    lanes: int


async def relays(store: Store) -> list[RelayAtWork]:
    """Every relay that lives, or whose death nobody has noticed yet."""
    seen = await store.inspection.overview()
    lanes = Counter(lane.owner for lane in seen.lanes)
    return [RelayAtWork(view=relay, lanes=lanes[relay.id]) for relay in seen.relays]


async def drain(store: Store, names: Sequence[str], *, by: str) -> list[str]:
    """Ask these relays, by id or name, or all that live if none is named, to drain; returns the ids that were asked."""
    asked = [one for name in (names or [EVERY_RELAY]) for one in await store.lanes.drain(name, by=by)]
    return list(dict.fromkeys(asked))


async def bury(store: Store, event_id: str, *, by: str) -> list[str]:
    """Ask that the event which holds its key up becomes a dead letter; returns the destinations it was asked for."""
    heads = [
        event.destination
        for event in (await store.browsing.show(event_id)).events
        if event.status is Status.FAILED and event.letter is None
    ]
    for destination in heads:
        await store.people.ask("bury", event_id, destination, by=by)
    return heads
