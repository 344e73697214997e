"""Is it flowing, and if not, why? One sentence, made of what a glance at the store shows."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pillarbox.admin.overview import Overview, RelayView
from pillarbox.core.statistics import COUNTED
from pillarbox.core.store import EVERYWHERE, Override
from pillarbox.core.text import noun, plural

State = Literal["flowing", "held up", "stopped"]

LONG = 60.0
"""Seconds that an event may wait where nobody said otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationView:
    """How a destination fares, as all relays together see it."""

    name: str
    state: Literal["open", "paused", "half-open", "closed"]
    """`closed` is a breaker that lets everything through."""
    forced: bool
    """A person holds it in this state."""
    last_error: str | None
    rate_limit: float | None

    @property
    def takes(self) -> bool:
        """Does it take messages, as far as anybody knows?"""
        return self.state == "closed" and not self.fails

    @property
    def fails(self) -> bool:
        """A person holds its breaker closed, and sends fail all the same."""
        return self.state == "closed" and self.forced and self.last_error is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The answer."""

    state: State
    why: str
    """'' where there is nothing to add."""


def flow(seen: Overview, destinations: Sequence[DestinationView], *, paused: bool, allowed: float = LONG) -> Flow:
    """Is it flowing? The first reason that explains most comes first. allowed: seconds that an event may wait."""
    alive = [relay for relay in seen.relays if relay.lease > 0]
    owners = {relay.id for relay in alive}
    orphans = sum(lane.owner not in owners for lane in seen.lanes)
    shut = [destination for destination in destinations if not destination.takes]
    if not alive:
        return Flow(state="stopped", why="no relay is running: start one with `pillarbox relay`")
    if paused:
        return Flow(state="stopped", why="a person paused every destination")
    if orphans == len(seen.lanes):
        return Flow(state="stopped", why="no relay has taken a lane yet")
    if troubles := [*map(_trouble, shut), *_unattended(seen, orphans)]:
        return Flow(state="held up", why="; ".join(troubles))
    if seen.oldest is not None and seen.oldest > allowed:
        return Flow(state="held up", why=_late(seen, allowed))
    return Flow(state="flowing", why="")


def destinations_of(
    relays: Sequence[RelayView], steering: Sequence[Override], *, met: Collection[str] = ()
) -> list[DestinationView]:
    """Every destination that anybody has something to say about, by name; met: further ones, seen in passing."""
    set_by_people = {row.destination: row for row in steering if row.destination != EVERYWHERE}
    alive = [relay for relay in relays if relay.lease > 0]
    names = sorted({*set_by_people, *met, *(name for relay in alive for name in relay.breakers)})
    return [_view(name, alive, set_by_people.get(name)) for name in names]


def _view(name: str, alive: Sequence[RelayView], wish: Override | None) -> DestinationView:
    forced = wish is not None and (wish.paused or wish.breaker is not None)
    return DestinationView(
        name=name,
        state=_state(set(_breakers(name, alive)), wish),
        forced=forced,
        last_error=wish.last_error if wish else None,
        rate_limit=wish.rate_limit if wish else None,
    )


def _breakers(name: str, alive: Sequence[RelayView]) -> Iterator[str]:
    return (relay.breakers[name] for relay in alive if name in relay.breakers)


def _state(breakers: set[str], wish: Override | None) -> Literal["open", "paused", "half-open", "closed"]:
    if wish is not None and wish.paused:
        return "paused"
    if wish is not None and wish.breaker is not None:
        return wish.breaker
    # One relay that can send is enough for the destination to be served.
    if not breakers or "closed" in breakers:
        return "closed"
    return "half-open" if breakers != {"open"} else "open"


def _unattended(seen: Overview, orphans: int) -> Iterator[str]:
    """What waits for a relay or for a person, whatever the destinations take."""
    if orphans:
        yield f"{orphans} of {plural(len(seen.lanes), 'lane')} {noun(orphans, 'has', 'have')} no living owner"
    if seen.blocked:
        keys = plural(seen.blocked, "key stands", "keys stand", most=COUNTED)
        yield f"{keys} still until a person decides: `pillarbox keys blocked`"


def _late(seen: Overview, allowed: float) -> str:
    """Nothing else explains it: the event itself tells what it waits for."""
    tells = f"`pillarbox events show {shlex.quote(seen.oldest_event or '')}` tells what for"
    return f"the oldest event waits for longer than the {allowed:g} s of console.slo; {tells}"


def _trouble(destination: DestinationView) -> str:
    error = f": {destination.last_error.splitlines()[0]}" if destination.last_error else ""
    if destination.fails:
        return f"a person holds {destination.name} closed, and it fails{error}"
    if destination.forced:
        return f"a person {'paused' if destination.state == 'paused' else 'shut'} {destination.name}"
    words = "is being tried again" if destination.state == "half-open" else "takes nothing"
    return f"{destination.name} {words}{error}"
