"""Durations as people write them: `500ms`, `2s`, `1h`, `7 days`; numbers are seconds."""

from __future__ import annotations

import re
from datetime import timedelta

from pillarbox.core.errors import ConfigurationError

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
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")

Duration = str | int | float | timedelta


def seconds(value: Duration, *, field: str = "duration") -> float:
    """`value` in seconds. Raises ConfigurationError, naming `field`, for anything else or anything negative."""
    if isinstance(value, timedelta):
        return _not_negative(value.total_seconds(), value, field)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _not_negative(float(value), value, field)
    if isinstance(value, str) and (written := _WRITTEN.fullmatch(value.strip().lower())):
        number, unit = written.groups()
        factor = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
        if factor:
            return float(number) * factor
    raise ConfigurationError(f"{field}: {value!r} is not a duration; write for example 500ms, 2s, 1h or 7 days")


def _not_negative(number: float, value: object, field: str) -> float:
    if not 0 <= number < float("inf"):
        raise ConfigurationError(f"{field}: {value!r} must be a finite number of seconds, zero or more")
    return number
