"""`eventually` returns when its condition holds, or raises with the last result."""

from __future__ import annotations

import pytest

from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.testing.waiting import eventually


def test_eventually_returns_the_first_true_result() -> None:
    async def scenario(simulation: Simulation) -> tuple[str, float]:
        async def check() -> str:
            return "there" if simulation.clock.monotonic() >= 3 else ""

        return await eventually(check, within=10, pause=1), simulation.clock.monotonic()

    assert simulate(scenario, seed=1) == ("there", 3)


def test_the_condition_can_be_a_plain_function() -> None:
    async def scenario(simulation: Simulation) -> float:
        assert await eventually(lambda: simulation.clock.monotonic() >= 3, within=10, pause=1)
        return simulation.clock.monotonic()

    assert simulate(scenario, seed=1) == 3


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_condition_that_is_not_met_in_time_raises_its_last_result(kind: str) -> None:
    async def scenario(simulation: Simulation) -> None:
        async def check() -> list[str]:
            return []

        if kind == "plain":
            await eventually(list, within=10, pause=1)
        else:
            await eventually(check, within=10, pause=1)

    with pytest.raises(AssertionError, match=r"not met within 10 s; its last result was \[\]"):
        simulate(scenario, seed=1)
