"""The health of the outbox: one snapshot for `status`, `top`, the console, the monitor and doctor.

It tells whether events flow and, if not, why.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.overview import Overview, RelayView
from pillarbox.core.clock import seconds
from pillarbox.core.statistics import COUNTED
from pillarbox.core.store import EVERYWHERE, Override
from pillarbox.core.text import noun, plural
from pillarbox.ops.settings.console import ConsoleOptions

BreakerState = Literal["open", "half-open", "closed"]
DestinationCondition = Literal["available", "unavailable", "paused", "limited"]
FlowState = Literal["flowing", "degraded", "stopped"]

DEFAULT_SLO = seconds(ConsoleOptions.slo)
"""Seconds that an event may be pending if `console.slo` is not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationView:
    """The state of a destination, combined from all relays."""

    name: str
    breaker: BreakerState = "closed"
    """The state of its circuit breaker: `closed` lets everything through."""
    paused: bool = False
    forced: bool = False
    """An operator paused it or forced its breaker."""
    last_error: str | None = None
    rate_limit: float | None = None
    """The rate limit that an operator set, per second."""

    @property
    def state(self) -> DestinationCondition:
        """What the relays do with its messages."""
        if self.paused:
            return "paused"
        if self.breaker != "closed" or self.fails:
            return "unavailable"
        return "available" if self.rate_limit is None else "limited"

    @property
    def is_available(self) -> bool:
        """Whether the relays send to it and no failure is known."""
        return self.state in ("available", "limited")

    @property
    def fails(self) -> bool:
        """Whether an operator forces its breaker closed while sends fail."""
        return self.breaker == "closed" and not self.paused and self.forced and self.last_error is not None

    @property
    def send_state(self) -> str:
        """`paused`, or the state of its circuit breaker."""
        return "paused" if self.paused else self.breaker


ProblemKind = Literal["no_relay", "paused", "no_lanes", "destination", "unowned_lanes", "blocked_keys", "late"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A reason why events do not flow."""

    kind: ProblemKind
    text: str
    """A sentence without its full stop."""
    destination: DestinationView | None = None
    """The destination that is not available."""
    event_id: str | None = None
    """The oldest pending event."""

    @property
    def sentence(self) -> str:
        return f"{self.text.rstrip('.')}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Whether events flow, and the reasons if they do not."""

    state: FlowState
    problems: tuple[Problem, ...] = ()
    """The one that explains most first; none while events flow."""

    @property
    def reason(self) -> str:
        """The problems as sentences; '' while events flow."""
        return " ".join(problem.sentence for problem in self.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSnapshot:
    """The state of the outbox at one time."""

    overview: Overview
    overrides: Sequence[Override]
    destinations: Sequence[DestinationView]
    flow: Flow
    paused: bool
    """An operator paused every destination."""

    @classmethod
    def of(cls, overview: Overview, overrides: Sequence[Override], *, allowed: float = DEFAULT_SLO) -> Self:
        """Combine an overview and the overrides. allowed: seconds that an event may be pending."""
        destinations = destinations_of(overview.relays, overrides)
        paused = any(row.destination == EVERYWHERE and row.paused for row in overrides)
        return cls(
            overview=overview,
            overrides=overrides,
            destinations=destinations,
            flow=flow(overview, destinations, paused=paused, allowed=allowed),
            paused=paused,
        )

    @property
    def running_relays(self) -> int:
        """Relays with a valid lease."""
        return sum(relay.lease > 0 for relay in self.overview.relays)

    @property
    def unowned_lanes(self) -> int:
        """Lanes without a running owner."""
        owners = {relay.id for relay in self.overview.relays if relay.lease > 0}
        return sum(lane.owner not in owners for lane in self.overview.lanes)

    def statistics(self) -> dict[str, object]:
        """The statistics as JSON, with the same names in every output."""
        overview = self.overview
        return {
            "backlog": overview.backlog,
            "oldest_seconds": None if overview.oldest is None else round(overview.oldest, 3),
            "exact": overview.exact,
            "dead_letters": overview.dead,
            "blocked_keys": overview.blocked,
        }


async def take_snapshot(store: AdminStore, *, allowed: float = DEFAULT_SLO) -> HealthSnapshot:
    """Read the health of an outbox. allowed: seconds that an event may be pending."""
    overview = await store.admin.inspection.overview()
    return HealthSnapshot.of(overview, await store.destinations.overrides(), allowed=allowed)


def flow(
    seen: Overview, destinations: Sequence[DestinationView], *, paused: bool, allowed: float = DEFAULT_SLO
) -> Flow:
    """Decide whether events flow.

    paused: an operator paused every destination. allowed: seconds that an event may be pending.
    """
    running = [relay for relay in seen.relays if relay.lease > 0]
    owners = {relay.id for relay in running}
    unowned = sum(lane.owner not in owners for lane in seen.lanes)
    if not running:
        return _stopped("no_relay", "no relay is running: start one with `pillarbox relay`")
    if paused:
        return _stopped("paused", "every destination is paused by an operator")
    if unowned == len(seen.lanes):
        return _stopped("no_lanes", "no relay has acquired a lane yet")
    unavailable = [destination for destination in destinations if not destination.is_available]
    if problems := [*map(_problem, unavailable), *_unattended(seen, unowned)]:
        return Flow(state="degraded", problems=tuple(problems))
    if seen.oldest is not None and seen.oldest > allowed:
        late = Problem(kind="late", text=_late(seen, allowed), event_id=seen.oldest_event)
        return Flow(state="degraded", problems=(late,))
    return Flow(state="flowing")


def _stopped(kind: ProblemKind, text: str) -> Flow:
    return Flow(state="stopped", problems=(Problem(kind=kind, text=text),))


def destinations_of(
    relays: Sequence[RelayView], overrides: Sequence[Override], *, known: Collection[str] = ()
) -> list[DestinationView]:
    """List every destination with an override or a breaker, by name; known: further names to include."""
    overridden = {row.destination: row for row in overrides if row.destination != EVERYWHERE}
    running = [relay for relay in relays if relay.lease > 0]
    names = sorted({*overridden, *known, *(name for relay in running for name in relay.breakers)})
    return [_view(name, running, overridden.get(name)) for name in names]


def _view(name: str, running: Sequence[RelayView], override: Override | None) -> DestinationView:
    return DestinationView(
        name=name,
        breaker=_breaker(set(_breakers(name, running)), override),
        paused=override is not None and override.paused,
        forced=override is not None and (override.paused or override.breaker is not None),
        last_error=override.last_error if override else None,
        rate_limit=override.rate_limit if override else None,
    )


def _breakers(name: str, running: Sequence[RelayView]) -> Iterator[str]:
    return (relay.breakers[name] for relay in running if name in relay.breakers)


def _breaker(breakers: set[str], override: Override | None) -> BreakerState:
    if override is not None and override.breaker is not None:
        return override.breaker
    # One relay that can send is enough for the destination to be served.
    if not breakers or "closed" in breakers:
        return "closed"
    return "half-open" if breakers != {"open"} else "open"


def _unattended(seen: Overview, unowned: int) -> Iterator[Problem]:
    """Yield what waits for a relay or an operator, independent of the state of the destinations."""
    if unowned:
        text = f"{unowned} of {plural(len(seen.lanes), 'lane')} {noun(unowned, 'has', 'have')} no running owner"
        yield Problem(kind="unowned_lanes", text=text)
    if seen.blocked:
        text = (
            f"{plural(seen.blocked, 'key is', 'keys are', limit=COUNTED)} blocked; "
            f"`pillarbox keys blocked` lists {noun(seen.blocked, 'it', 'them')}"
        )
        yield Problem(kind="blocked_keys", text=text)


def _late(seen: Overview, allowed: float) -> str:
    """The event itself has the reason if nothing else explains the delay."""
    command = f"`pillarbox events show {shlex.quote(seen.oldest_event or '')}`"
    return f"the oldest event is pending for longer than the {allowed:g} s of console.slo: {command} says why"


def _problem(destination: DestinationView) -> Problem:
    return Problem(kind="destination", text=_trouble(destination), destination=destination)


def _trouble(destination: DestinationView) -> str:
    error = f": {destination.last_error.splitlines()[0]}" if destination.last_error else ""
    if destination.fails:
        return f"{destination.name} is forced closed by an operator, but sends fail{error}"
    if destination.paused and error:  # by an operator, or by a relay, because the destination is gone
        return f"{destination.name} is paused{error}"
    if destination.forced:
        return f"{destination.name} is {'paused' if destination.paused else 'forced open'} by an operator"
    return f"{destination.name} is {'being probed' if destination.breaker == 'half-open' else 'unavailable'}{error}"
