"""State machines on the memory store, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import HealthCheck, settings

from pillarbox.testing.conformance import StoreHarness
from pillarbox.testing.machines import LaneOwnershipInVirtualTime, MessageLifecycle, run_machine
from pillarbox.testing.memory import MemoryHarness
from pillarbox.testing.simulation import SimulatedClock, SimulatedLoop

SETTINGS = settings(
    max_examples=100,
    stateful_step_count=40,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def _endless() -> SimulatedLoop:
    return SimulatedLoop.of(max_time=float("inf"), max_steps=10**9)


@pytest.mark.parametrize("lanes", [1, 64])
def test_the_life_of_a_message(lanes: int) -> None:
    @asynccontextmanager
    async def harness() -> AsyncIterator[StoreHarness]:
        yield MemoryHarness(lanes=lanes, clock=SimulatedClock(asyncio.get_running_loop()))

    run_machine(MessageLifecycle, harness, SETTINGS, make_loop=_endless)


@pytest.mark.parametrize("lanes", [1, 7, 64])
def test_lane_ownership(lanes: int) -> None:
    @asynccontextmanager
    async def harness() -> AsyncIterator[StoreHarness]:
        yield MemoryHarness(lanes=lanes, clock=SimulatedClock(asyncio.get_running_loop()))

    run_machine(LaneOwnershipInVirtualTime, harness, SETTINGS, make_loop=_endless)
