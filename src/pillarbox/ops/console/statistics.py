"""The statistics of the overview: the current state, and rates over the last minutes.

Invariant: the console queries the store at most once a second, however many browsers are open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.errors import PillarboxError
from pillarbox.core.statistics import LAGS, SAMPLE_INTERVAL, BacklogStatistics, OutcomeStatistics, Sample
from pillarbox.ops.console.timeouts import TIMEOUT, within

T = TypeVar("T")

MAX_AGE = 1.0
"""Seconds for which what was read is cached."""
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class SharedRead(Generic[T]):
    """Reads the store for all requests together, at most once in `MAX_AGE` seconds."""

    def __init__(self, read: Callable[[], Awaitable[T]], *, clock: Clock | None = None) -> None:
        self._read = read
        self._clock = clock or SystemClock()
        self._lock = asyncio.Lock()
        self._found: T | PillarboxError | None = None
        self._stale_at = 0.0

    async def get(self) -> T:
        """Return what was read within `MAX_AGE`. Raises the error of the store to every caller that waited for it."""
        async with self._lock:
            if self._found is None or self._clock.monotonic() >= self._stale_at:
                try:
                    self._found = await within(TIMEOUT, self._read())
                except PillarboxError as error:
                    self._found = error
                self._stale_at = self._clock.monotonic() + MAX_AGE
            if isinstance(self._found, PillarboxError):
                raise self._found.with_traceback(None)
            return self._found

    @property
    def last(self) -> T | None:
        """What was read last, at any time; None after a change or an error."""
        return None if isinstance(self._found, PillarboxError) else self._found

    def forget(self) -> None:
        """Drop what was read, after a change."""
        self._found = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSeries:
    """Statistics over time, one value per step; None without a measurement."""

    step: float
    times: list[float]
    """Unix times, each the end of a step."""
    recorded: list[float | None]
    published: list[float | None]
    """Messages per second. An event with three destinations counts as three messages in both, so that what is recorded
    and not published is what the backlog grows by."""
    p50: list[float | None]
    p95: list[float | None]
    p99: list[float | None]
    """Seconds from recording to confirmation, interpolated; an hour stands for that much or more."""


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
        recorded=[_recorded(highest, carried, at, step) for at in steps],
        published=[carried[at].published / step if at in carried else 0.0 if at in highest else None for at in steps],
        **lags,
    )


def _recorded(
    highest: Mapping[int, int], carried: Mapping[int, OutcomeStatistics], at: int, step: float
) -> float | None:
    """Return the messages per second of a step: the events since the last measured step, if it is close, and copies."""
    if at not in highest:
        return None
    before = next((earlier for earlier in range(at - 1, at - 4, -1) if earlier in highest), None)
    if before is None:
        return None
    copies = sum(carried[one].copies for one in range(before + 1, at + 1) if one in carried)
    return max(0.0, (highest[at] - highest[before] + copies) / ((at - before) * step))


def _lag(carried: OutcomeStatistics | None, share: float) -> float | None:
    lag = None if carried is None else carried.lag_quantile(share)
    # The last bucket has no upper bound, but a chart needs a number.
    return None if lag is None else min(lag, LAGS[-1])
