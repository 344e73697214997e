"""Time and chance, injected: whatever decides by them can be run again, exactly, under a simulation."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What a component may ask about time."""

    def now(self) -> datetime:
        """The wall clock, in UTC: for stamps that people read, never for a decision of the relay."""
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
