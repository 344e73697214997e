"""Time and chance: the injected clock and randomness, durations, timestamps, and a timeout that progress extends.

Components decide by an injected `Clock` and `Chance` only, so that a simulation can repeat a run exactly.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Protocol, overload
from weakref import WeakValueDictionary

from pillarbox.core.errors import ConfigurationError

Duration = str | int | float | timedelta
"""A length of time: a number of seconds, a timedelta, or text such as `500ms`, `2s`, `1h`, `7 days`."""

_UNITS = {
    "ms": 0.001,
    "millisecond": 0.001,
    "s": 1,
    "second": 1,
    "m": 60,
    "min": 60,
    "minute": 60,
    "h": 3600,
    "hour": 3600,
    "d": 86_400,
    "day": 86_400,
    "w": 604_800,
    "week": 604_800,
}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")
_TIMESTAMP = "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ"
_CHECKS = 4
"""How often progress is checked within the limit."""


class Clock(Protocol):
    """What a component may ask about time."""

    def now(self) -> datetime:
        """The wall clock, in UTC: for timestamps that operators read, never for a decision of the relay."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow, also while the machine sleeps where the system can tell."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Pause the calling task."""
        ...


_ELAPSED: Callable[[], float] = (
    (lambda: time.clock_gettime(time.CLOCK_BOOTTIME)) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return _ELAPSED()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Chance(Protocol):
    """A source of randomness; `random.Random` is one."""

    def random(self) -> float:
        """A number in [0, 1)."""
        ...


def system_chance() -> Chance:
    """Randomness of the operating system, for jitter and ids."""
    return random.SystemRandom()


def seconds(value: Duration, *, field: str = "duration") -> float:
    """`value` in seconds. Raises ConfigurationError, naming `field`, for anything else or anything negative."""
    if isinstance(value, timedelta):
        return _not_negative(value.total_seconds(), value, field)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _not_negative(float(value), value, field)
    if isinstance(value, str) and (written := _DURATION.fullmatch(value.strip().lower())):
        number, unit = written.groups()
        factor = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
        if factor:
            return float(number) * factor
    raise ConfigurationError(f"{field}: {value!r} is not a duration; write for example 500ms, 2s, 1h or 7 days")


def _not_negative(number: float, value: object, field: str) -> float:
    if not 0 <= number < float("inf"):
        raise ConfigurationError(f"{field}: {value!r} must be a finite number of seconds, zero or more")
    return number


@overload
def timestamp(at: datetime) -> str: ...


@overload
def timestamp(at: None) -> None: ...


@overload
def timestamp(at: datetime | None) -> str | None: ...


def timestamp(at: datetime | None) -> str | None:
    """`at` as text: UTC, six digits of fraction and `Z`, as in `2026-11-30T09:00:00.000000Z`. None stays None.

    Every output uses it: commands, logs, the console and its API, exports, headers and bodies of messages. The width
    is fixed, so timestamps sort as text. A time without zone is taken for UTC, as every store keeps it.
    """
    if at is None:
        return None
    utc = at if at.tzinfo is UTC or at.tzinfo is None else at.astimezone(UTC)
    # Every event has one: `isoformat` takes half as long again, most of it for the zone.
    return _TIMESTAMP % (utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond)


class ProgressTimeout:
    """`asyncio.timeout(limit)` that starts over whenever `progress` returns another value than before.

    Raises TimeoutError after `limit` to 1.25 times `limit` seconds without progress; after exactly `limit` seconds if
    there was no progress at all. `progress` is called on entering, and then every quarter of the limit.
    """

    __slots__ = ("_before", "_expired", "_limit", "_progress", "_seen", "_task", "_watch", "deadline")

    def __init__(self, limit: float, progress: Callable[[], object]) -> None:
        self._limit = limit
        self._progress = progress
        self._expired = False

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("a ProgressTimeout needs a running task: await it inside one")
        self._task = task
        self._before = task.cancelling()
        self._seen = self._progress()
        now = loop.time()
        self.deadline = now + self._limit
        watch = _watches.get(loop)
        if watch is None:
            watch = _watches[loop] = _Watch()
        self._watch = watch
        watch.add(self, now)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.remove(self)
        # As asyncio.timeout does: a cancellation from elsewhere stays one.
        if self._expired and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def next_check(self, now: float) -> float:
        """When to check for progress again at the latest."""
        return min(self.deadline, now + self._limit / _CHECKS)

    def check(self, now: float) -> bool:
        """Check for progress; False: the limit has passed, and the task inside is cancelled."""
        if (seen := self._progress()) != self._seen:
            self._seen = seen
            self.deadline = now + self._limit
        self._expired = now >= self.deadline
        if self._expired:
            self._task.cancel()
        return not self._expired


class _Watch:
    """Checks all timeouts of one event loop with one timer. Nearly all of them end long before the first check, and a
    timer for each would cost more than everything else they do."""

    __slots__ = ("__weakref__", "_next", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[ProgressTimeout, None] = {}
        self._next = math.inf

    def add(self, timeout: ProgressTimeout, now: float) -> None:
        self._waiting[timeout] = None
        if (at := timeout.next_check(now)) < self._next:
            self._check_at(at)

    def remove(self, timeout: ProgressTimeout) -> None:
        self._waiting.pop(timeout, None)

    def _check_at(self, at: float) -> None:
        self._next = at
        asyncio.get_running_loop().call_at(at, self._check, at)

    def _check(self, at: float) -> None:
        if at != self._next:
            return  # a shorter limit came meanwhile, with a timer of its own
        self._next = math.inf
        now = asyncio.get_running_loop().time()
        try:
            for timeout in list(self._waiting):
                # What timed out is not checked again, nor what raises in `progress`.
                del self._waiting[timeout]
                if timeout.check(now):
                    self._waiting[timeout] = None
        finally:
            if self._waiting:
                self._check_at(min(timeout.next_check(now) for timeout in self._waiting))


_watches: WeakValueDictionary[asyncio.AbstractEventLoop, _Watch] = WeakValueDictionary()
"""Its timer and the timeouts that it checks keep a watch alive: it ends with its loop, or with the last timeout."""
