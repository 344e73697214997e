"""Liveness: a due event is delivered soon; it waits neither for a relay that cannot send nor for the next poll."""

from __future__ import annotations

import asyncio

import pytest

from pillarbox import Event
from pillarbox.core.fetch import Ready
from pillarbox.core.lane import RelayRegistration, epochs_of
from pillarbox.core.message import Held
from pillarbox.core.outcome import Resolved
from pillarbox.relay.fetch import ORPHANS_EVERY
from pillarbox.relay.guards import CRASHES_TO_QUARANTINE
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.transports.memory import MemoryTransport
from tests.simulation.plan import CONFIG, Plan
from tests.simulation.stage import Stage, ids
from tests.simulation.world import World

RECOVERED_WITHIN = 3.0
"""Seconds of virtual time, as documented."""
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


def test_the_lanes_of_a_relay_that_cannot_send_are_taken_by_one_that_can() -> None:
    async def scenario(simulation: Simulation) -> None:
        world = World(simulation, CALM)
        world.start()
        world.start()
        world.processes[0].transport.outage()
        world.faults = 1
        await asyncio.gather(*(world.write(f"key {number}") for number in range(CALM.keys)))
        await world.finish()

    simulate(scenario, seed=1, max_time=3_600, max_steps=5_000_000)


def test_the_only_lane_of_a_relay_that_cannot_send_is_taken_by_one_that_has_sent_nothing_yet() -> None:
    """Destinations of event types: a relay without a lane has no message for one, and so knows none."""

    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        stage.store = MemoryStore(lanes=1, clock=simulation.clock)
        broken = MemoryTransport(clock=simulation.clock)
        broken.outage()
        stage.record(Event("thing.happened", {}, event_id="e"))
        async with stage.running(transports={"memory": broken}):
            await stage.until(
                lambda: any("open" in one.breakers.values() for one in stage.store._tables.relays.values())
            )
            async with stage.running():
                await stage.until(lambda: ids(stage.transport.deliveries) == ["e"])

    simulate(scenario, seed=1)


async def hold_all_behind(world: World) -> None:
    """Record events of many orphaned queues, as a relay leaves them that ended right after their settlement."""
    await world.store.lanes.join(RelayRegistration(id="before"), lease=60)
    epochs = epochs_of(await world.store.lanes.acquire("before", limit=8))
    with world.store.transaction() as transaction:
        for number in range(CALM.events):
            key = f"key {number % CALM.keys}"
            world.committed[key].append(f"{key}/{number}")
            world.outbox.record(transaction, Event("thing.happened", {}, event_id=f"{key}/{number}", key=key))
    messages = await world.store.messages.fetch(Ready(lanes=list(epochs)))
    assert len(messages) > CONFIG.max_in_flight
    await world.store.writes.hold(epochs, [Resolved(message, "d0") for message in messages], Held.WAITING)
    await world.store.lanes.release("before")


@pytest.mark.parametrize("crashes", [0, CRASHES_TO_QUARANTINE], ids=["in bulk", "one at a time"])
def test_queues_beyond_a_full_fetch_are_read_by_the_next_one(crashes: int) -> None:
    """Also if a lane whose owners crashed sends one message at a time, so that most of a fetch is not sent."""

    async def scenario(simulation: Simulation) -> None:
        world = World(simulation, CALM)
        await hold_all_behind(world)
        for lane in world.store._tables.lanes:
            lane.crashes = crashes
        began = simulation.clock.monotonic()
        world.start()
        await world.finish()
        assert simulation.clock.monotonic() - began < ORPHANS_EVERY

    simulate(scenario, seed=1, max_time=3_600, max_steps=5_000_000)


@pytest.mark.parametrize("outage", [0.5, 2.0, 7.0])
def test_messages_parked_by_an_outage_do_not_wait_for_the_search_for_orphaned_queues(outage: float) -> None:
    async def scenario(simulation: Simulation) -> None:
        world = World(simulation, CALM)
        await hold_all_behind(world)
        world.start()
        world.faults = 1
        transport = world.processes[0].transport
        transport.outage()
        await simulation.clock.sleep(outage)
        transport.heal()
        healed = simulation.clock.monotonic()
        await world.finish()
        assert simulation.clock.monotonic() - healed < RECOVERED_WITHIN

    simulate(scenario, seed=1, max_time=3_600, max_steps=5_000_000)
