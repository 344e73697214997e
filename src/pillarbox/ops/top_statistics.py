"""The statistics of `pillarbox top`: backlog, rates, destinations and relays.

The rates of relays come from the samples that they write; the rates of recording and of the backlog are differences of
two reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.overview import Overview
from pillarbox.core.statistics import SAMPLE_INTERVAL, OutcomeStatistics, Sample
from pillarbox.ops.health import DEFAULT_SLO, DestinationView, Flow, take_snapshot

RATE_WINDOW = 60.0
"""Seconds over which the rates of relays are averaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationStatistics:
    """Statistics of a destination in the last minute; rates are per second, None if no relay has reported."""

    view: DestinationView
    published: float | None
    retried: float | None
    dead: float | None
    lag: float | None
    """Median seconds from recording to confirm; None if nothing was sent."""
    slow: float | None
    """99th percentile; infinity if it is above the largest bucket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStatistics:
    """A relay with its lanes and lease."""

    name: str
    host: str
    lanes: int
    lease: float
    """Seconds left; negative once it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One refresh; rates are per second, None in the first one."""

    flow: Flow
    backlog: int
    exact: bool
    oldest: float | None
    dead: int
    recorded: float | None
    growth: float | None
    """Growth of the backlog per second; negative: it shrinks."""
    lanes: int
    unowned_lanes: int
    """Lanes without a running owner."""
    destinations: Sequence[DestinationStatistics]
    relays: Sequence[RelayStatistics]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    at: float
    recorded: int
    backlog: int
    exact: bool


class Watch:
    """Reads a store repeatedly; `clock` returns monotonic seconds."""

    def __init__(self, store: AdminStore, *, clock: Callable[[], float], allowed: float = DEFAULT_SLO) -> None:
        """allowed: seconds that an event may be pending."""
        self._store = store
        self._allowed = allowed
        self._clock = clock
        self._before: _Before | None = None

    async def refresh(self) -> Frame:
        """Raises StoreUnavailableError, SchemaError."""
        health = await take_snapshot(self._store, allowed=self._allowed)
        seen = health.overview
        samples = await self._store.admin.samples.since(RATE_WINDOW)
        before = self._before
        now = self._before = _Before(at=self._clock(), recorded=seen.recorded, backlog=seen.backlog, exact=seen.exact)
        delivered = _delivered(samples)
        return Frame(
            flow=health.flow,
            backlog=seen.backlog,
            exact=seen.exact,
            oldest=seen.oldest,
            dead=seen.dead,
            recorded=_recorded(before, now, delivered, _span(samples)),
            growth=_rate(before, now, now.backlog - before.backlog if before and before.exact and now.exact else None),
            lanes=len(seen.lanes),
            unowned_lanes=health.unowned_lanes,
            destinations=_destinations(health.destinations, delivered, _span(samples)),
            relays=_relays(seen),
        )


def _rate(before: _Before | None, now: _Before, difference: int | None) -> float | None:
    if before is None or difference is None or now.at <= before.at:
        return None
    return difference / (now.at - before.at)


def _recorded(
    before: _Before | None, now: _Before, delivered: Mapping[str, OutcomeStatistics], span: float
) -> float | None:
    """Return the messages per second that were recorded: an event counts once for each destination, as delivered."""
    events = _rate(before, now, now.recorded - before.recorded if before and before.recorded else None)
    return None if events is None else events + sum(one.copies for one in delivered.values()) / span


def _delivered(samples: Sequence[Sample]) -> Mapping[str, OutcomeStatistics]:
    sums: dict[str, OutcomeStatistics] = {}
    for sample in samples:
        if isinstance(sample.values, OutcomeStatistics):
            sums.setdefault(sample.destination, OutcomeStatistics()).add(sample.values)
    return sums


def _span(samples: Sequence[Sample]) -> float:
    """Return the seconds that the samples cover: each covers the time since the previous one."""
    if not samples:
        return RATE_WINDOW
    between = samples[-1].at - samples[0].at + timedelta(seconds=SAMPLE_INTERVAL)
    return min(RATE_WINDOW, between.total_seconds())


def _destinations(
    known: Sequence[DestinationView], delivered: Mapping[str, OutcomeStatistics], span: float
) -> list[DestinationStatistics]:
    quiet = set(delivered) - {view.name for view in known}
    views = [
        *known,
        *(DestinationView(name=name) for name in quiet),
    ]
    return [_statistics(view, delivered.get(view.name), span) for view in sorted(views, key=lambda one: one.name)]


def _statistics(view: DestinationView, sums: OutcomeStatistics | None, span: float) -> DestinationStatistics:
    if sums is None:
        return DestinationStatistics(view=view, published=None, retried=None, dead=None, lag=None, slow=None)
    return DestinationStatistics(
        view=view,
        published=sums.published / span,
        retried=sums.retried / span,
        dead=sums.dead / span,
        lag=sums.lag_quantile(0.5),
        slow=sums.lag_quantile(0.99),
    )


def _relays(seen: Overview) -> list[RelayStatistics]:
    lanes = Counter(lane.owner for lane in seen.lanes)
    return [
        RelayStatistics(name=relay.name or relay.id, host=relay.host, lanes=lanes[relay.id], lease=relay.lease)
        for relay in seen.relays
    ]
