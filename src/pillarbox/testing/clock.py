"""A clock that only a test advances: scheduled events and retries fall due without waiting."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from pillarbox.core.clock import Duration, SystemClock, seconds
from pillarbox.core.errors import ConfigurationError


class VirtualClock:
    """Implements `pillarbox.core.clock.Clock`. `now()` stands still until the test advances it.

    Time limits of the relay use the monotonic clock, which runs on in real time, so that a handler that hangs is
    detected.
    """

    def __init__(self, start: datetime | None = None) -> None:
        """start: the first time, with a time zone; None: the current time."""
        if start is not None and start.utcoffset() is None:
            raise ConfigurationError(f"start {start} has no time zone; pass datetime(…, tzinfo=UTC)")
        self._start = (start or datetime.now(UTC)).astimezone(UTC)
        self._advanced = 0.0
        self._system = SystemClock()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._advanced)

    def monotonic(self) -> float:
        return self._system.monotonic() + self._advanced

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def advance(self, by: Duration) -> None:
        """Let this much time pass: seconds, a timedelta, or text such as "90s" or "1h"."""
        self._advanced += seconds(by, field="by")

    def advance_to(self, at: datetime) -> None:
        """Let time pass until `at`; nothing changes if that time has passed."""
        self._advanced = max(self._advanced, (at - self._start).total_seconds())
