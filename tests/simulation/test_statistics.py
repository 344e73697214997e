"""Statistics over time: a relay reports exactly what it delivered, also if the store is unavailable in between."""

from __future__ import annotations

from pillarbox import Event
from pillarbox.core.statistics import OUTBOX, BacklogStatistics, OutcomeStatistics
from pillarbox.testing.simulation import Simulation, simulate
from tests.simulation.stage import Stage


def test_samples_add_up_to_what_was_delivered() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        async with stage.running():
            for round_ in range(3):
                stage.record(*(Event("a", {}, key=f"{round_}:{n}") for n in range(20)))
                await simulation.clock.sleep(15)
        samples = await stage.store.admin.samples.since(3600)
        carried = [sample.values for sample in samples if isinstance(sample.values, OutcomeStatistics)]
        assert sum(one.published for one in carried) == 60
        assert sum(sum(one.lags) for one in carried) == 60
        levels = [sample.values for sample in samples if isinstance(sample.values, BacklogStatistics)]
        assert len(levels) >= 3
        assert {sample.destination for sample in samples} == {OUTBOX, "a"}
        assert max(level.recorded for level in levels) == 60

    simulate(scenario, seed=1)
