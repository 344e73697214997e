"""The one way in which a time is written: UTC, six digits of fraction and `Z`, so that text sorts as time does.

    2026-11-30T09:00:00.000000Z

Every output uses it: commands, logs, the console and its API, exports, archives, headers and bodies of messages.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import overload

_FORMAT = "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ"


@overload
def timestamp(at: datetime) -> str: ...


@overload
def timestamp(at: None) -> None: ...


@overload
def timestamp(at: datetime | None) -> str | None: ...


def timestamp(at: datetime | None) -> str | None:
    """27 characters, whatever the time; None stays None. A time without zone is taken for UTC, as every store keeps
    it."""
    if at is None:
        return None
    utc = at if at.tzinfo is UTC or at.tzinfo is None else at.astimezone(UTC)
    # Every event has one: `isoformat` takes half as long again, most of it for the zone.
    return _FORMAT % (utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond)
