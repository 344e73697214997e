"""Time and randomness: the injected clock and source of randomness, durations and timestamps.

Components use an injected `Clock` and `RandomSource` for every decision, so that a simulation can repeat a run exactly.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol, overload

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


class Clock(Protocol):
    """The time, as components read it."""

    def now(self) -> datetime:
        """The wall clock, in UTC: for timestamps that operators read, never for decisions of the relay."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back; they include suspended time, where the system counts it."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Pause the calling task."""
        ...


# Not a function of its own: the relay asks for the time several times per message.
_ELAPSED: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)


class SystemClock:
    """The clock of the operating system."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    monotonic = staticmethod(_ELAPSED)

    async def sleep(self, seconds: float) -> None:
        # Commands that only print something need no event loop: they import this module for its timestamps.
        from asyncio import sleep

        await sleep(seconds)


class RandomSource(Protocol):
    """A source of randomness; `random.Random` is one."""

    def random(self) -> float:
        """A number in [0, 1)."""
        ...


def system_rng() -> RandomSource:
    """Randomness of the operating system, for jitter and ids."""
    return random.SystemRandom()


LONGEST = 36_525 * 86_400.0
"""Seconds of the longest duration, 100 years: the time of a database plus this is a time that it can store."""


def seconds(value: Duration, *, field: str = "duration") -> float:
    """`value` in seconds. Raises ConfigurationError, naming `field`, if it is negative or not a duration."""
    if isinstance(value, timedelta):
        return _in_range(value.total_seconds(), value, field)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # An integer may be too large for `float`.
        number = value if isinstance(value, float) else max(-1, min(value, 2 * LONGEST))
        return _in_range(float(number), value, field)
    if isinstance(value, str) and (written := _DURATION.fullmatch(value.strip().lower())):
        amount, unit = written.groups()
        factor = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
        if factor:
            return _in_range(float(amount) * factor, value, field)
    raise ConfigurationError(f"{field}: {value!r} is not a duration; write for example 500ms, 2s, 1h or 7 days")


def _in_range(number: float, value: object, field: str) -> float:
    if not 0 <= number < float("inf"):
        raise ConfigurationError(f"{field}: {value!r} must be a finite number of seconds, zero or more; change it")
    if number > LONGEST:
        raise ConfigurationError(f"{field}: {value!r} is longer than 100 years; write a shorter duration")
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
    is fixed, so timestamps sort as text. A time without zone is UTC, as in every store.
    """
    if at is None:
        return None
    utc = at if at.tzinfo is UTC or at.tzinfo is None else at.astimezone(UTC)
    # On the hot path: `isoformat` takes 50 % longer, most of it for the zone.
    return _TIMESTAMP % (utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond)


def parse_timestamp(text: str | None) -> datetime | None:
    """The time in UTC that an ISO-8601 text with a zone names, as in a header of a message; None if it names none."""
    try:
        found = datetime.fromisoformat(text or "")
        return found.astimezone(UTC) if found.tzinfo else None
    except (ValueError, OverflowError):
        return None
