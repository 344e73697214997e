"""Simulation: one seed is one schedule, with virtual time, a shuffled order and no input or output.

    def test_something() -> None:
        async def scenario(simulation: Simulation) -> None:
            store = MemoryStore(clock=simulation.clock)
            ...
        for seed in range(1000):
            simulate(scenario, seed=seed)

A failure names its seed. A seed reproduces the run exactly if the story takes its randomness from `simulation.rng`
and does not iterate over sets of texts (their order changes with every process unless PYTHONHASHSEED is set).
"""

from pillarbox.testing.simulation.clock import SimulatedClock
from pillarbox.testing.simulation.loop import Deadlock, Runaway, SimulatedLoop, SimulationError
from pillarbox.testing.simulation.simulate import Simulation, simulate

__all__ = ["Deadlock", "Runaway", "SimulatedClock", "SimulatedLoop", "Simulation", "SimulationError", "simulate"]
