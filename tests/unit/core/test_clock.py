"""The system clock: timezone-aware, and monotonic."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from pillarbox.core.clock import Clock, RandomSource, SystemClock, system_rng


def test_the_wall_clock_is_in_utc() -> None:
    clock: Clock = SystemClock()
    assert clock.now().tzinfo is UTC
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(minutes=1)


def test_the_monotonic_clock_never_goes_back() -> None:
    clock = SystemClock()
    readings = [clock.monotonic() for _ in range(1000)]
    assert readings == sorted(readings)


async def test_sleeping_yields_to_other_tasks() -> None:
    ran = asyncio.Event()
    asyncio.get_running_loop().call_soon(ran.set)
    await SystemClock().sleep(0)
    assert ran.is_set()


def test_random_numbers_are_below_one() -> None:
    rng: RandomSource = system_rng()
    assert all(0 <= rng.random() < 1 for _ in range(1000))
