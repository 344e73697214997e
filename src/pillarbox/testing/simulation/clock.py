"""The clock of a simulation: it shows the virtual time of its loop."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
"""When every simulation begins."""


class SimulatedClock:
    """See `pillarbox.core.clock.Clock`. Wall and monotonic time pass together."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> datetime:
        return BEGINNING + timedelta(seconds=self._loop.time())

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
