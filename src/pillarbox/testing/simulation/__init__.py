"""A seed is one schedule: virtual time, a shuffled order, no real input or output, exactly replayable.

    def test_something() -> None:
        async def story(simulation: Simulation) -> None:
            store = MemoryStore(clock=simulation.clock)
            ...
        for seed in range(1000):
            simulate(story, seed=seed)

A failure names its seed. What is replayed is exactly what ran, as long as the story draws its randomness from
`simulation.chance` and iterates over no set of texts (their order changes with every process unless PYTHONHASHSEED
is set).
"""

from pillarbox.testing.simulation.clock import SimulatedClock
from pillarbox.testing.simulation.loop import Deadlock, Runaway, SimulatedLoop, SimulationError
from pillarbox.testing.simulation.simulate import Simulation, simulate

__all__ = ["Deadlock", "Runaway", "SimulatedClock", "SimulatedLoop", "Simulation", "SimulationError", "simulate"]
