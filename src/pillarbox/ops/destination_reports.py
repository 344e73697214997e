"""What an operator asks about a destination: how much is pending, since when, how fast it arrives and leaves, and why
not. The same for the command line, the console and the API.

Pending messages without a route are attributed to the destinations that the routes of the settings give them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.destinations import RECENT, SCANNED, DestinationLoad, OverrideChange, PendingGroup
from pillarbox.admin.overview import Overview
from pillarbox.admin.states import EventState, StateCount
from pillarbox.core.statistics import COUNTED, LAGS, BacklogStatistics, OutcomeStatistics, Sample
from pillarbox.core.store import EVERYWHERE
from pillarbox.ops.destination_overrides import known_destinations
from pillarbox.ops.health import DestinationView, HealthSnapshot, destinations_of
from pillarbox.relay.routing import Route

SPAN = RECENT
"""Seconds over which the rates of a destination are averaged."""
FAILING = 0.5
"""The share of failed sends from which a destination counts as failing although its breaker is closed."""
UNROUTED = ""
"""The name under which messages are reported for which no route is known."""

FindRoute = Callable[[str, str | None], Collection[str]]
"""Event type and aggregate type → destinations; none if they are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationRates:
    """Rates of a destination over `SPAN`."""

    published: float
    """Per second."""
    failed: float
    """The share of sends that failed, from 0 to 1."""
    p95: float | None
    """Seconds from recording to confirmation; the largest bound of `LAGS` stands for that much or more."""

    @property
    def fails(self) -> bool:
        return self.failed >= FAILING


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationReport:
    """A destination with its load."""

    view: DestinationView
    pending: StateCount
    oldest: float | None = None
    """Seconds since the oldest pending message could have been sent; among the scanned ones, if there are more."""
    states: Mapping[EventState, int] = field(default_factory=dict[EventState, int])
    """Scanned pending messages by state."""
    recorded: float | None = None
    """Messages per second that were recorded for it over `SPAN`; None if the history does not tell."""
    rates: DestinationRates | None = None
    """None if no relay has reported."""
    change: OverrideChange | None = None
    """Who set its override."""

    @property
    def name(self) -> str:
        return self.view.name


def route_finder(routes: Sequence[Route], known: Collection[str]) -> FindRoute:
    """Return what finds the destinations of an event: by the routes, or, without any, by a destination of its name."""

    def find(event_type: str, aggregate_type: str | None) -> Collection[str]:
        if routes:
            return next((route.to for route in routes if route.matches(event_type, aggregate_type)), ())
        return (event_type,) if event_type in known else ()

    return find


async def read_reports(
    store: AdminStore, snapshot: HealthSnapshot, *, routes: Sequence[Route] = ()
) -> list[DestinationReport]:
    """Report every known destination, by name, and what has no route yet under `UNROUTED`, if there is any.

    A name is known if it has a breaker, an override, pending messages, dead letters or recent deliveries.
    """
    load = await store.admin.inspection.destinations()
    samples = await store.admin.samples.since(SPAN)
    rates = rates_by_destination(samples, seconds=SPAN)
    names = {*await known_destinations(store), *rates, *(group.destination for group in load.pending)} - {UNROUTED}
    views = destinations_of(snapshot.overview.relays, snapshot.overrides, known=names)
    return reports_of(views, load, rates, snapshot.overview, routes=routes, idle=_nothing_recorded(samples))


def reports_of(
    views: Sequence[DestinationView],
    load: DestinationLoad,
    rates: Mapping[str, DestinationRates],
    seen: Overview,
    *,
    routes: Sequence[Route] = (),
    idle: bool = False,
) -> list[DestinationReport]:
    """Combine what was read of the destinations. idle: nothing was recorded lately."""
    groups = _attributed(load.pending, route_finder(routes, {view.name for view in views}))
    arrivals = _arrivals(load, groups)
    # No history is kept, or everything delivered lately was recorded before.
    unknown = not load.delivered and not idle and any(one.published for one in rates.values())
    changes = {change.destination: change for change in load.changes if change.destination != EVERYWHERE}
    shown = [*views, *([DestinationView(name=UNROUTED)] if UNROUTED in groups else [])]
    return [
        DestinationReport(
            view=view,
            pending=_pending(groups[view.name], load.scanned, seen),
            oldest=max((one.oldest for one in groups[view.name] if one.oldest is not None), default=None),
            states=_states(groups[view.name]),
            recorded=None if unknown else arrivals.get(view.name, 0.0),
            rates=rates.get(view.name),
            change=changes.get(view.name),
        )
        for view in shown
    ]


def rates_by_destination(samples: Iterable[Sample], *, seconds: float) -> dict[str, DestinationRates]:
    """Aggregate the samples of relays by destination."""
    sums: dict[str, OutcomeStatistics] = {}
    for sample in samples:
        if isinstance(sample.values, OutcomeStatistics):
            sums.setdefault(sample.destination, OutcomeStatistics()).add(sample.values)
    return {name: _rates(carried, seconds) for name, carried in sums.items()}


def _nothing_recorded(samples: Iterable[Sample]) -> bool:
    numbers = [sample.values.recorded for sample in samples if isinstance(sample.values, BacklogStatistics)]
    return len(numbers) > 1 and min(numbers) == max(numbers)


def unavailable_or_failing(
    destinations: Iterable[DestinationView], rates: Mapping[str, DestinationRates]
) -> list[DestinationView]:
    """List destinations that are unavailable, paused or failing."""
    return [one for one in destinations if not one.is_available or (one.name in rates and rates[one.name].fails)]


def sparkline(samples: Iterable[Sample], name: str, *, now: datetime, seconds: float, steps: int = 60) -> list[float]:
    """Return the messages per second that were published to a destination, one value per step, the oldest first."""
    width = seconds / steps
    published = [0] * steps
    for sample in samples:
        if sample.destination == name and isinstance(sample.values, OutcomeStatistics):
            step = steps - 1 - int((now - sample.at).total_seconds() // width)
            if 0 <= step < steps:
                published[step] += sample.values.published
    return [count / width for count in published]


def _attributed(pending: Sequence[PendingGroup], find: FindRoute) -> defaultdict[str, list[PendingGroup]]:
    """Group by destination; a message without a route counts for each of the destinations that it will have."""
    groups: defaultdict[str, list[PendingGroup]] = defaultdict(list)
    for group in pending:
        names = (group.destination,) if group.destination else find(group.event_type, group.aggregate_type)
        for name in names or (UNROUTED,):
            groups[name].append(group)
    return groups


def _arrivals(load: DestinationLoad, groups: Mapping[str, Sequence[PendingGroup]]) -> Mapping[str, float]:
    """Return the messages per second that were recorded, by destination.

    Each half is a rate over its own window: if all scanned messages are recent, the window begins with the first.
    """
    half = SCANNED // 2
    recent = sum(group.recent for group in load.pending)
    firsts = [group.first_recent for group in load.pending if group.first_recent is not None]
    pending_window = max(firsts, default=RECENT) if recent >= half else RECENT
    delivered = sum(one.messages for one in load.delivered)
    delivered_window = max((one.first for one in load.delivered), default=RECENT) if delivered >= half else RECENT
    found: defaultdict[str, float] = defaultdict(float)
    for name, of_name in groups.items():
        found[name] += sum(group.recent for group in of_name) / max(pending_window, 1.0)
    for one in load.delivered:
        found[one.destination] += one.messages / max(delivered_window, 1.0)
    return found


def _pending(groups: Sequence[PendingGroup], scanned: int, seen: Overview) -> StateCount:
    found = sum(group.messages for group in groups)
    if scanned < SCANNED:
        return StateCount(found)
    if not seen.exact and seen.backlog > COUNTED + 1:
        return StateCount(round(found / scanned * seen.backlog), "estimate")
    return StateCount(found) if seen.exact else StateCount(found, "at_least")


def _states(groups: Sequence[PendingGroup]) -> dict[EventState, int]:
    counted: Counter[EventState] = Counter()
    for group in groups:
        counted[group.state] += group.messages
    return {state: counted[state] for state in EventState if counted[state]}


def _rates(carried: OutcomeStatistics, seconds: float) -> DestinationRates:
    failed = carried.retried + carried.dead
    sends = carried.published + failed
    lag = carried.lag_quantile(0.95)
    return DestinationRates(
        published=carried.published / seconds,
        failed=failed / sends if sends else 0.0,
        p95=None if lag is None else min(lag, LAGS[-1]),
    )
