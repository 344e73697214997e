"""Runs a scenario under one seed, cleans up, and names the seed if it fails."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from pillarbox.testing.simulation.clock import SimulatedClock
from pillarbox.testing.simulation.loop import DAY, MAX_STEPS, SimulatedLoop, SimulationError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Passed to a scenario: its seed, its clock and its randomness."""

    seed: int | str
    clock: SimulatedClock
    rng: random.Random
    loop: SimulatedLoop


def simulate(
    scenario: Callable[[Simulation], Awaitable[T]],
    *,
    seed: int | str,
    max_time: float = DAY,
    max_steps: int = MAX_STEPS,
) -> T:
    """Run a coroutine function to its end in virtual time; tasks that remain are cancelled.

    Raises what the scenario raises, Deadlock if it can never continue, Runaway beyond its bounds, and SimulationError
    for an error that was not caught; each with the seed in its notes.
    """
    loop = SimulatedLoop.of(seed=seed, max_time=max_time, max_steps=max_steps)
    simulation = Simulation(seed=seed, clock=SimulatedClock(loop), rng=random.Random(seed), loop=loop)
    try:
        result = loop.run_until_complete(_as_coroutine(scenario, simulation))
        loop.cancel_remaining_tasks()
        loop.collect_unhandled_errors()
        if loop.unhandled_errors:
            raise SimulationError("\n".join(loop.unhandled_errors))
        return result
    except BaseException as error:
        error.add_note(f"replay with seed={seed!r}")
        loop.cancel_remaining_tasks()
        raise
    finally:
        loop.close()


async def _as_coroutine(scenario: Callable[[Simulation], Awaitable[T]], simulation: Simulation) -> T:
    return await scenario(simulation)
