"""The statistics of the overview: the current state, and rates over the last minutes.

Invariant: the console queries the store at most once a second, however many browsers are open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pillarbox.admin.admin import AdminStore
from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.errors import PillarboxError
from pillarbox.core.statistics import SAMPLE_INTERVAL, BacklogStatistics, OutcomeStatistics, Sample
from pillarbox.ops.console.timeouts import TIMEOUT, within
from pillarbox.ops.health import DEFAULT_SLO, DestinationView, HealthSnapshot, take_snapshot

MAX_AGE = 1.0
"""Seconds for which a snapshot is cached."""
SPAN = 300.0
"""Seconds over which the rates of a destination are averaged."""
FAILING = 0.5
"""The share of failed sends from which a destination counts as failing although its breaker is closed."""
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class OverviewCache:
    """Caches one snapshot for all requests."""

    def __init__(self, store: AdminStore, *, allowed: float = DEFAULT_SLO, clock: Clock | None = None) -> None:
        """allowed: seconds that an event may be pending."""
        self._store = store
        self._allowed = allowed
        self._clock = clock or SystemClock()
        self._lock = asyncio.Lock()
        self._found: HealthSnapshot | PillarboxError | None = None
        self._stale_at = 0.0

    async def snapshot(self) -> HealthSnapshot:
        """Return a snapshot at most a second old. Raises the error of the store to every caller that waited for it."""
        async with self._lock:
            if self._found is None or self._clock.monotonic() >= self._stale_at:
                try:
                    self._found = await within(TIMEOUT, take_snapshot(self._store, allowed=self._allowed))
                except PillarboxError as error:
                    self._found = error
                self._stale_at = self._clock.monotonic() + MAX_AGE
            if isinstance(self._found, PillarboxError):
                raise self._found.with_traceback(None)
            return self._found

    def forget(self) -> None:
        """Drop the cached snapshot after a change."""
        self._found = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSeries:
    """Statistics over time, one value per step; None without a measurement."""

    step: float
    times: list[float]
    """Unix times, each the end of a step."""
    recorded: list[float | None]
    published: list[float | None]
    """Per second."""
    p50: list[float | None]
    p95: list[float | None]
    p99: list[float | None]
    """Seconds from recording to confirmation, as bounds of buckets."""


def step_width(seconds: float) -> float:
    """Return a step width for about a hundred steps, at least the interval of the samples."""
    return max(SAMPLE_INTERVAL, round(seconds / 90 / SAMPLE_INTERVAL) * SAMPLE_INTERVAL)


def time_series(samples: Sequence[Sample], *, now: datetime, seconds: float) -> TimeSeries:
    """Aggregate the samples of the last `seconds` into steps."""
    step = step_width(seconds)
    last = int(now.timestamp() // step)
    steps = range(last - int(seconds // step) + 1, last + 1)
    carried: dict[int, OutcomeStatistics] = {}
    highest: dict[int, int] = {}
    for sample in samples:
        at = int(sample.at.timestamp() // step)
        match sample.values:
            case OutcomeStatistics() as sums:
                carried.setdefault(at, OutcomeStatistics()).add(sums)
            case BacklogStatistics(recorded=recorded):
                highest[at] = max(recorded, highest.get(at, 0))
    lags = {name: [_lag(carried.get(at), share) for at in steps] for name, share in SHARES.items()}
    return TimeSeries(
        step=step,
        times=[(at + 1) * step for at in steps],
        recorded=[_rate(highest, at, step) for at in steps],
        published=[carried[at].published / step if at in carried else 0.0 if at in highest else None for at in steps],
        **lags,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationRates:
    """Rates of a destination over `SPAN`."""

    published: float
    """Per second."""
    failed: float
    """The share of sends that failed, from 0 to 1."""
    p95: float | None

    @property
    def fails(self) -> bool:
        return self.failed >= FAILING


async def recent_rates(store: AdminStore) -> dict[str, DestinationRates]:
    """Return the recent rates of each destination."""
    return rates_by_destination(await store.admin.samples.since(SPAN), seconds=SPAN)


def unavailable_or_failing(
    destinations: Iterable[DestinationView], rates: Mapping[str, DestinationRates]
) -> list[DestinationView]:
    """List destinations that are unavailable or failing."""
    return [one for one in destinations if not one.is_available or (one.name in rates and rates[one.name].fails)]


def rates_by_destination(samples: Iterable[Sample], *, seconds: float) -> dict[str, DestinationRates]:
    """Aggregate the samples by destination."""
    sums: dict[str, OutcomeStatistics] = {}
    for sample in samples:
        if isinstance(sample.values, OutcomeStatistics):
            sums.setdefault(sample.destination, OutcomeStatistics()).add(sample.values)
    return {name: _rates(carried, seconds) for name, carried in sums.items()}


def _rates(carried: OutcomeStatistics, seconds: float) -> DestinationRates:
    failed = carried.retried + carried.dead
    sends = carried.published + failed
    return DestinationRates(
        published=carried.published / seconds,
        failed=failed / sends if sends else 0.0,
        p95=_lag(carried, 0.95),
    )


def _rate(highest: dict[int, int], at: int, step: float) -> float | None:
    """Return the recording rate of a step: the difference to the last measured step, if it is close."""
    if at not in highest:
        return None
    before = next((earlier for earlier in range(at - 1, at - 4, -1) if earlier in highest), None)
    return None if before is None else max(0.0, (highest[at] - highest[before]) / ((at - before) * step))


def _lag(carried: OutcomeStatistics | None, share: float) -> float | None:
    bound = None if carried is None else carried.lag_quantile(share)
    # The last bucket has no upper bound, but a chart needs a number.
    return 7200.0 if bound == float("inf") else bound
