"""What is owed is also carried soon: nobody waits for a relay that cannot send, nor for the next round of looks."""

from __future__ import annotations

import asyncio

from pillarbox import Event
from pillarbox.core.lane import RelayCard, epochs_of
from pillarbox.core.looks import Ready
from pillarbox.core.message import Held
from pillarbox.core.outcome import Resolved
from pillarbox.relay.reading import HEADLESS_EVERY
from pillarbox.testing.simulation import Simulation, simulate
from tests.simulation.world import TUNING, Plan, World

CALM = Plan(
    relays=2,
    keys=20,
    events=100,
    destinations=1,
    kills=0,
    outages=0,
    joins=0,
    freezes=0,
    rejected=0,
    poisoned=0,
    delayed=0,
    rolled_back=0,
    latency=0.001,
)


async def finish(world: World) -> None:
    await world._until_quiet()
    for process in world.processes:
        await process.stop()
    await world._judge()


def test_the_lanes_of_a_relay_that_cannot_send_are_taken_by_one_that_can() -> None:
    async def story(simulation: Simulation) -> None:
        world = World(simulation, CALM)
        world.start()
        world.start()
        world.processes[0].transport.outage()
        world.cuts = 1
        await asyncio.gather(*(world._write(f"key {number}") for number in range(CALM.keys)))
        await finish(world)

    simulate(story, seed=1, max_time=3_600, max_steps=5_000_000)


def test_lines_that_a_full_look_did_not_come_to_are_read_by_the_next_one() -> None:
    async def story(simulation: Simulation) -> None:
        world = World(simulation, CALM)
        await world.store.lanes.join(RelayCard(id="before"), lease=60)
        epochs = epochs_of(await world.store.lanes.take("before", most=8))
        with world.store.transaction() as transaction:
            for number in range(CALM.events):
                key = f"key {number % CALM.keys}"
                world.committed[key].append(f"{key}/{number}")
                world.outbox.record(transaction, Event("thing.happened", {}, event_id=f"{key}/{number}", key=key))
        messages = await world.store.messages.read(Ready(lanes=list(epochs)))
        assert len(messages) > TUNING.most_in_hand
        await world.store.writes.hold(epochs, [Resolved(message, "d0") for message in messages], Held.BEHIND)
        await world.store.lanes.leave("before")
        began = simulation.clock.monotonic()
        world.start()
        await finish(world)
        assert simulation.clock.monotonic() - began < HEADLESS_EVERY

    simulate(story, seed=1, max_time=3_600, max_steps=5_000_000)
