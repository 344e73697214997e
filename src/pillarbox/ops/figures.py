"""What `pillarbox top` shows: how much there is, how fast it moves, and who moves it, from looks that stay cheap.

What relays carried comes from their own samples; what was recorded and how the backlog changes, from two looks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.overview import Overview
from pillarbox.core.statistics import EVERY, Carried, Sample
from pillarbox.core.store import EVERYWHERE
from pillarbox.ops.flow import LONG, DestinationView, Flow, destinations_of, flow

WINDOW = 60.0
"""Seconds over which what relays carried is averaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationFigures:
    """How a destination fared in the last minute; rates are per second, and None where no relay told anything."""

    view: DestinationView
    published: float | None
    retried: float | None
    dead: float | None
    lag: float | None
    """Seconds from recording to confirmation under which half of them were; None if there were none."""
    slow: float | None
    """… and under which 99 of 100 were; infinity if it was longer than is told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayFigures:
    """A relay and what it has."""

    name: str
    host: str
    lanes: int
    lease: float
    """Seconds left; negative once it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One look; rates are per second, and None where there was no look before."""

    flow: Flow
    backlog: int
    exact: bool
    oldest: float | None
    dead: int
    recorded: float | None
    growth: float | None
    """By which the backlog grows; negative: it shrinks."""
    lanes: int
    orphans: int
    """Lanes without a living owner."""
    destinations: Sequence[DestinationFigures]
    relays: Sequence[RelayFigures]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    at: float
    recorded: int
    backlog: int
    exact: bool


class Watch:
    """Looks at a store again and again; `clock` gives seconds that only grow."""

    def __init__(self, store: AdminStore, *, clock: Callable[[], float], allowed: float = LONG) -> None:
        """allowed: seconds that an event may wait."""
        self._store = store
        self._allowed = allowed
        self._clock = clock
        self._before: _Before | None = None

    async def look(self) -> Frame:
        """Raises StoreUnavailableError, SchemaError."""
        seen = await self._store.admin.inspection.overview()
        steering = await self._store.destinations.overrides()
        samples = await self._store.admin.samples.since(WINDOW)
        before = self._before
        now = self._before = _Before(at=self._clock(), recorded=seen.recorded, backlog=seen.backlog, exact=seen.exact)
        carried = _carried(samples)
        paused = any(row.destination == EVERYWHERE and row.paused for row in steering)
        destinations = destinations_of(seen.relays, steering)
        owners = {relay.id for relay in seen.relays if relay.lease > 0}
        return Frame(
            flow=flow(seen, destinations, paused=paused, allowed=self._allowed),
            backlog=seen.backlog,
            exact=seen.exact,
            oldest=seen.oldest,
            dead=seen.dead,
            recorded=_rate(before, now, now.recorded - before.recorded if before and before.recorded else None),
            growth=_rate(before, now, now.backlog - before.backlog if before and before.exact and now.exact else None),
            lanes=len(seen.lanes),
            orphans=sum(lane.owner not in owners for lane in seen.lanes),
            destinations=_destinations(destinations, carried, _span(samples)),
            relays=_relays(seen),
        )


def _rate(before: _Before | None, now: _Before, difference: int | None) -> float | None:
    if before is None or difference is None or now.at <= before.at:
        return None
    return difference / (now.at - before.at)


def _carried(samples: Sequence[Sample]) -> Mapping[str, Carried]:
    sums: dict[str, Carried] = {}
    for sample in samples:
        if isinstance(sample.figures, Carried):
            sums.setdefault(sample.destination, Carried()).add(sample.figures)
    return sums


def _span(samples: Sequence[Sample]) -> float:
    """Seconds that the samples stand for: each for the time since the one before it."""
    if not samples:
        return WINDOW
    between = samples[-1].at - samples[0].at + timedelta(seconds=EVERY)
    return min(WINDOW, between.total_seconds())


def _destinations(
    known: Sequence[DestinationView], carried: Mapping[str, Carried], span: float
) -> list[DestinationFigures]:
    quiet = set(carried) - {view.name for view in known}
    views = [
        *known,
        *(DestinationView(name=name, state="closed", forced=False, last_error=None, rate_limit=None) for name in quiet),
    ]
    return [_figures(view, carried.get(view.name), span) for view in sorted(views, key=lambda one: one.name)]


def _figures(view: DestinationView, sums: Carried | None, span: float) -> DestinationFigures:
    if sums is None:
        return DestinationFigures(view=view, published=None, retried=None, dead=None, lag=None, slow=None)
    return DestinationFigures(
        view=view,
        published=sums.published / span,
        retried=sums.retried / span,
        dead=sums.dead / span,
        lag=sums.lag_quantile(0.5),
        slow=sums.lag_quantile(0.99),
    )


def _relays(seen: Overview) -> list[RelayFigures]:
    lanes = Counter(lane.owner for lane in seen.lanes)
    return [
        RelayFigures(name=relay.name or relay.id, host=relay.host, lanes=lanes[relay.id], lease=relay.lease)
        for relay in seen.relays
    ]
