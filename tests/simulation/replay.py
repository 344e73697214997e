"""Replays schedules by seed: `python -m tests.simulation.replay SEED`, or `FIRST LAST` for a range.

`pipelined` before the seeds selects pipelined destinations.

It imports no internal modules of the relay, so that it also runs against another version of the package.
"""

from __future__ import annotations

import sys

from pillarbox.testing.simulation import Simulation, simulate
from tests.simulation.plan import Plan
from tests.simulation.world import World


def run(seed: int, *, pipelined: bool = False) -> None:
    """Raise AssertionError with the violations of this schedule, and its plan."""

    async def scenario(simulation: Simulation) -> None:
        plan = Plan.drawn(simulation.rng)
        if pipelined:
            plan = plan.made_pipelined()
        try:
            await World(simulation, plan).run()
        except BaseException as error:
            words = f"pipelined {seed}" if pipelined else f"{seed}"
            error.add_note(f"{plan}\nreplay with `python -m tests.simulation.replay {words}`")
            raise

    simulate(scenario, seed=seed, max_time=86_400, max_steps=5_000_000)


def main() -> None:
    pipelined = sys.argv[1] == "pipelined"
    first, last = int(sys.argv[1 + pipelined]), int(sys.argv[-1])
    for seed in range(first, last + 1):
        try:
            run(seed, pipelined=pipelined)
        except Exception as error:
            print(f"seed {seed}: {error}", flush=True)


if __name__ == "__main__":
    main()
