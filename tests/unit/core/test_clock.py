"""The machine's own clock: zoned, and never running backwards."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from pillarbox.core.clock import Chance, Clock, SystemClock, system_chance


def test_the_wall_clock_is_in_utc() -> None:
    clock: Clock = SystemClock()
    assert clock.now().tzinfo is UTC
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(minutes=1)


def test_elapsed_seconds_only_grow() -> None:
    clock = SystemClock()
    readings = [clock.monotonic() for _ in range(1000)]
    assert readings == sorted(readings)


async def test_sleeping_lets_others_run() -> None:
    ran = asyncio.Event()
    asyncio.get_running_loop().call_soon(ran.set)
    await SystemClock().sleep(0)
    assert ran.is_set()


def test_chance_is_a_number_below_one() -> None:
    chance: Chance = system_chance()
    assert all(0 <= chance.random() < 1 for _ in range(1000))
