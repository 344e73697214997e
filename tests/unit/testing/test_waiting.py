"""Waiting for a fact: it ends with the fact, or with an error that says what was seen last."""

from __future__ import annotations

import pytest

from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.testing.waiting import eventually


def test_waiting_ends_with_the_first_true_answer() -> None:
    async def story(simulation: Simulation) -> tuple[str, float]:
        async def look() -> str:
            return "there" if simulation.clock.monotonic() >= 3 else ""

        return await eventually(look, within=10, pause=1), simulation.clock.monotonic()

    assert simulate(story, seed=1) == ("there", 3)


def test_waiting_in_vain_is_an_error_with_the_last_answer() -> None:
    async def story(simulation: Simulation) -> None:
        async def look() -> list[str]:
            return []

        await eventually(look, within=10, pause=1)

    with pytest.raises(AssertionError, match=r"10 s in vain; the last answer was \[\]"):
        simulate(story, seed=1)
