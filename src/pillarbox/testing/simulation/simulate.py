"""Runs a story under one seed, cleans up, and names the seed if it fails."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from pillarbox.testing.simulation.clock import SimulatedClock
from pillarbox.testing.simulation.loop import DAY, MOST_STEPS, SimulatedLoop, SimulationError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Passed to a story: its seed, its clock and its randomness."""

    seed: int | str
    clock: SimulatedClock
    chance: random.Random
    loop: SimulatedLoop


def simulate(
    story: Callable[[Simulation], Awaitable[T]],
    *,
    seed: int | str,
    max_time: float = DAY,
    max_steps: int = MOST_STEPS,
) -> T:
    """Run a coroutine function to its end in virtual time; tasks that remain are cancelled.

    Raises what the story raises, Deadlock if it can never continue, Runaway beyond its bounds, and SimulationError for
    an error that was not caught; each with the seed in its notes.
    """
    loop = SimulatedLoop.of(seed=seed, max_time=max_time, max_steps=max_steps)
    simulation = Simulation(seed=seed, clock=SimulatedClock(loop), chance=random.Random(seed), loop=loop)
    try:
        result = loop.run_until_complete(_told(story, simulation))
        loop.cancel_everything()
        loop.complain_of_unheard_errors()
        if loop.complaints:
            raise SimulationError("\n".join(loop.complaints))
        return result
    except BaseException as error:
        error.add_note(f"replay with seed={seed!r}")
        loop.cancel_everything()
        raise
    finally:
        loop.close()


async def _told(story: Callable[[Simulation], Awaitable[T]], simulation: Simulation) -> T:
    return await story(simulation)
