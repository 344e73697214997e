"""Between two looks: the doorbell is asked for late, and not for a while after it rang in vain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from pillarbox import Event
from pillarbox.relay.slumber import AWAKE_FOR, AWAKE_PAUSE, Slumber
from pillarbox.stores.memory.wakeup import MemoryWakeup
from pillarbox.testing.simulation import Simulation, simulate
from tests.simulation.stage import TUNING, Stage


class Attentive(MemoryWakeup):
    """A doorbell that remembers when it was asked for, and when no longer."""

    asked: list[float]
    now: Callable[[], float]

    async def doze(self, relay: str, seconds: float) -> None:
        self.asked.append(self.now())
        await super().doze(relay, seconds)


def bedroom(simulation: Simulation) -> tuple[Stage, Slumber, Attentive]:
    stage = Stage(simulation)
    bell = Attentive(stage.store._tables)
    bell.asked, bell.now = [], simulation.clock.monotonic
    stage.store.wakeup = bell
    return stage, Slumber(relay="r", store=stage.store, clock=simulation.clock, tuning=TUNING), bell


async def looks_in_vain(stage: Stage, slumber: Slumber, *, until: float) -> list[float]:
    """Look again and again and find nothing; returns the times of the looks."""
    at = []
    while stage.now < until:
        at.append(stage.now)
        await slumber.after_nothing()
    return at


def test_pauses_grow_and_the_doorbell_is_asked_for_after_a_while() -> None:
    async def story(simulation: Simulation) -> None:
        stage, slumber, bell = bedroom(simulation)
        began = stage.now
        at = await looks_in_vain(stage, slumber, until=began + 1)
        assert [round(time - began, 3) for time in at[:4]] == [0, 0.005, 0.015, 0.035]
        assert bell.asked
        assert bell.asked[0] - began > 0.03
        await slumber.after_work()
        at = await looks_in_vain(stage, slumber, until=stage.now + 0.02)
        assert round(at[1] - at[0], 3) == 0.005

    simulate(story, seed=1)


def test_rung_in_vain_twice_it_looks_by_itself_for_a_while() -> None:
    async def story(simulation: Simulation) -> None:
        stage, slumber, bell = bedroom(simulation)
        listening = simulation.loop.create_task(slumber.listen())
        await looks_in_vain(stage, slumber, until=stage.now + 1)
        for _ in range(2):
            stage.record(Event("another.relays", {}))
            await looks_in_vain(stage, slumber, until=stage.now + 0.2)
        asked, since = len(bell.asked), stage.now
        at = await looks_in_vain(stage, slumber, until=since + AWAKE_FOR - 0.5)
        assert len(bell.asked) == asked
        assert max(after - before for before, after in pairwise(at)) <= AWAKE_PAUSE + 0.001
        await looks_in_vain(stage, slumber, until=stage.now + 2)
        assert len(bell.asked) > asked
        listening.cancel()

    simulate(story, seed=1)


def test_a_ring_that_brought_work_is_not_counted() -> None:
    async def story(simulation: Simulation) -> None:
        stage, slumber, bell = bedroom(simulation)
        listening = simulation.loop.create_task(slumber.listen())
        await looks_in_vain(stage, slumber, until=stage.now + 1)
        for _ in range(5):
            stage.record(Event("mine", {}))
            await stage.rest(0.01)
            await slumber.after_work()
            asked = len(bell.asked)
            await looks_in_vain(stage, slumber, until=stage.now + 1)
            assert len(bell.asked) > asked
        listening.cancel()

    simulate(story, seed=1)


def test_told_to_it_looks_at_a_fixed_delay_after_the_last_look() -> None:
    async def story(simulation: Simulation) -> None:
        stage = Stage(simulation)
        tuning = replace(TUNING, poll_interval="2s", adaptive=False, doorbell=False)
        slumber = Slumber(relay="r", store=stage.store, clock=simulation.clock, tuning=tuning)
        at = await looks_in_vain(stage, slumber, until=stage.now + 20)
        assert {round(after - before, 3) for before, after in pairwise(at)} == {2.0}

    simulate(story, seed=1)


def test_a_relay_at_a_fixed_delay_carries_everything() -> None:
    async def story(simulation: Simulation) -> None:
        stage = Stage(simulation, replace(TUNING, poll_interval="2s", adaptive=False, doorbell=False))
        async with stage.running():
            for number in range(5):
                stage.record(Event("a", {}, event_id=f"{number}", key="k"))
                await stage.rest(2.5)
        assert [one.message.event_id for one in stage.transport.deliveries] == [f"{number}" for number in range(5)]

    simulate(story, seed=1)
