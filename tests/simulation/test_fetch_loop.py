"""Between two fetches: what wakes the relay, and when producers notify it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise

import pytest

from pillarbox import Event
from pillarbox.core.fetch import Fetched, FetchQuery, Ready
from pillarbox.relay.fetch_loop import (
    ARRIVALS_PERIOD,
    AWAKE_FOR,
    AWAKE_PAUSE,
    FIRST_FETCH_PAUSE,
    MAX_EMPTY,
    MAX_NOTIFIED,
    NOTIFIED_PAUSE,
    FetchLoop,
)
from pillarbox.stores.memory.messages import MemoryMessages
from pillarbox.stores.memory.wakeup import MemoryWakeup
from pillarbox.testing.simulation import Simulation, simulate
from tests.simulation.stage import CONFIG, Stage
from tests.unit.relay.contexts import relay_context


class Watched(MemoryWakeup):
    """A wake-up that records when the relay asked to be notified, and when no longer; each call takes `latency`."""

    asleep: list[float]
    awake: list[float]
    now: Callable[[], float]
    latency = 0.0

    async def request(self, relay: str, seconds: float) -> None:  # type: ignore[override] # to mypy an `async def` has another type
        await asyncio.sleep(self.latency)
        (self.asleep if seconds else self.awake).append(self.now())
        await super().request(relay, seconds)


def watch(stage: Stage, simulation: Simulation) -> Watched:
    wakeup = Watched(stage.store._tables)
    wakeup.asleep, wakeup.awake, wakeup.now = [], [], simulation.clock.monotonic
    stage.store.wakeup = wakeup
    return wakeup


@asynccontextmanager
async def waiting(simulation: Simulation) -> AsyncIterator[tuple[Stage, FetchLoop, Watched]]:
    """An idle wait with its two tasks."""
    stage = Stage(simulation)
    wakeup = watch(stage, simulation)
    idle = FetchLoop(relay_context(stage.store, clock=simulation.clock, config=CONFIG))
    tasks = [simulation.loop.create_task(work()) for work in (idle.listen, idle.tell_producers)]
    try:
        yield stage, idle, wakeup
    finally:
        for task in tasks:
            task.cancel()


async def fetch(idle: FetchLoop, stage: Stage, *, until: float, found: int = 0, takes: float = 0.0) -> list[float]:
    """Fetch repeatedly with one result; return the times of the fetches."""
    at = []
    while stage.now < until:
        at.append(stage.now)
        idle.begin_fetch()
        await asyncio.sleep(takes)
        await idle.after_fetch(found)
    return at


def test_an_idle_relay_asks_producers_to_notify_it_and_fetches_once_more() -> None:
    async def scenario(simulation: Simulation) -> None:
        async with waiting(simulation) as (stage, idle, wakeup):
            wakeup.latency = 0.02
            began = stage.now
            at = await fetch(idle, stage, until=began + 0.05)
            assert round(wakeup.asleep[0] - began, 3) == 0.02
            assert [round(time - began, 3) for time in at] == [0, 0.002, 0.006, 0.014, 0.02]

    simulate(scenario, seed=1)


@pytest.mark.parametrize("notifies", [True, False], ids=["notified", "not notified"])
def test_after_a_fetch_that_left_nothing_behind_it_waits_for_a_notification(notifies: bool) -> None:
    async def scenario(simulation: Simulation) -> None:
        async with waiting(simulation) as (stage, idle, wakeup):
            wakeup.notifies = notifies
            for pause in (0.03, None):
                await fetch(idle, stage, until=stage.now + 1)
                await notified_fetch(idle, stage)
                began = stage.now
                if pause is not None:
                    simulation.loop.call_later(pause, stage.record, Event("a", {}))
                await idle.after_fetch(1, took_all=True)
                expected = (pause or NOTIFIED_PAUSE) if notifies else FIRST_FETCH_PAUSE
                assert round(stage.now - began, 6) == expected

    simulate(scenario, seed=1)


async def notified_fetch(idle: FetchLoop, stage: Stage) -> None:
    """A fetch caused by a notification, until its end: it returns one event and leaves none."""
    stage.record(Event("a", {}))
    await stage.rest(0.001)
    idle.begin_fetch()


def test_only_after_a_fetch_that_a_notification_caused_it_waits_for_the_next_one() -> None:
    async def scenario(simulation: Simulation) -> None:
        async with waiting(simulation) as (stage, idle, _):
            await fetch(idle, stage, until=stage.now + 1)
            await stage.rest(0.001)
            idle.begin_fetch()
            began = stage.now
            await idle.after_fetch(1, took_all=True)
            assert round(stage.now - began, 6) == FIRST_FETCH_PAUSE

    simulate(scenario, seed=1)


def test_the_long_pause_does_not_outlive_the_notifications() -> None:
    async def scenario(simulation: Simulation) -> None:
        async with waiting(simulation) as (stage, idle, wakeup):
            await fetch(idle, stage, until=stage.now + 1)
            await notified_fetch(idle, stage)
            simulation.loop.call_later(0.01, idle._wakeups.fetch)
            await idle.after_fetch(1, took_all=True)
            wakeup.notifies = False
            idle.begin_fetch()
            began = stage.now
            await idle.after_fetch(0)
            assert round(stage.now - began, 6) == FIRST_FETCH_PAUSE

    simulate(scenario, seed=1)


def test_it_does_not_wait_for_notifications_that_it_has_just_switched_off() -> None:
    async def scenario(simulation: Simulation) -> None:
        async with waiting(simulation) as (stage, idle, wakeup):
            await fetch(idle, stage, until=stage.now + 1)
            wakeup.latency = 1.0
            for _ in range(MAX_NOTIFIED + 1):
                await notified_fetch(idle, stage)
                began = stage.now
                simulation.loop.call_later(0.0005, idle._wakeups.fetch)
                await idle.after_fetch(1, took_all=True)
            await notified_fetch(idle, stage)
            began = stage.now
            await idle.after_fetch(1, took_all=True)
            assert round(stage.now - began, 6) == FIRST_FETCH_PAUSE

    simulate(scenario, seed=1)


def test_after_a_fetch_that_left_events_behind_it_fetches_at_once() -> None:
    async def scenario(simulation: Simulation) -> None:
        async with waiting(simulation) as (stage, idle, _):
            await fetch(idle, stage, until=stage.now + 1)
            began = stage.now
            idle.begin_fetch()
            await idle.after_fetch(1, took_all=False)
            assert stage.now == began

    simulate(scenario, seed=1)


def test_the_fetch_loop_does_not_wait_for_the_statement_that_informs_producers() -> None:
    async def scenario(simulation: Simulation) -> None:
        async with waiting(simulation) as (stage, idle, wakeup):
            wakeup.latency = 3600
            at = await fetch(idle, stage, until=stage.now + 5)
            assert max(after - before for before, after in pairwise(at)) <= 0.1 + 1e-6

    simulate(scenario, seed=1)


def test_after_many_empty_notifications_it_polls_for_a_while() -> None:
    async def scenario(simulation: Simulation) -> None:
        async with waiting(simulation) as (stage, idle, wakeup):
            await fetch(idle, stage, until=stage.now + 1)
            recorded = 0
            while not wakeup.awake:
                stage.record(Event("another.relays", {}))
                recorded += 1
                await fetch(idle, stage, until=stage.now + 0.2)
            assert MAX_EMPTY // 2 <= recorded <= MAX_EMPTY + 1  # The memory store may notify twice of one event.
            asked, since = len(wakeup.asleep), stage.now
            at = await fetch(idle, stage, until=since + AWAKE_FOR - 0.5)
            assert wakeup.awake
            assert len(wakeup.asleep) == asked
            assert max(after - before for before, after in pairwise(at)) <= AWAKE_PAUSE + 0.001
            await fetch(idle, stage, until=stage.now + 2)
            assert len(wakeup.asleep) > asked

    simulate(scenario, seed=1)


def test_a_notification_with_an_event_is_not_counted_as_empty() -> None:
    async def scenario(simulation: Simulation) -> None:
        async with waiting(simulation) as (stage, idle, wakeup):
            await fetch(idle, stage, until=stage.now + 1)
            for _ in range(3 * MAX_EMPTY):
                stage.record(Event("mine", {}))
                await stage.rest(0.01)
                idle.begin_fetch()
                await idle.after_fetch(1)
                await fetch(idle, stage, until=stage.now + 0.1)
            assert not wakeup.awake

    simulate(scenario, seed=1)


def test_producers_of_frequent_events_do_not_notify_until_events_are_rare() -> None:
    async def scenario(simulation: Simulation) -> None:
        async with waiting(simulation) as (stage, idle, wakeup):
            await fetch(idle, stage, until=stage.now + 1)
            assert not wakeup.awake
            await fetch(idle, stage, until=stage.now + 1, found=1, takes=0.001)
            assert len(wakeup.awake) == 1
            asked, since = len(wakeup.asleep), stage.now
            await fetch(idle, stage, until=since + 4 * ARRIVALS_PERIOD, found=1, takes=0.005)
            assert len(wakeup.asleep) == asked, "still more than those that bring them back"
            await fetch(idle, stage, until=stage.now + 3 * ARRIVALS_PERIOD, found=1, takes=0.01)
            assert len(wakeup.asleep) > asked

    simulate(scenario, seed=1)


def test_a_relay_with_a_backlog_is_not_notified() -> None:
    async def scenario(simulation: Simulation) -> None:
        async with waiting(simulation) as (_, idle, wakeup):
            for _ in range(60):
                idle.begin_fetch()
                await asyncio.sleep(0.02)
                await idle.after_fetch(500)
            assert len(wakeup.awake) == 1
            assert max(wakeup.asleep) < wakeup.awake[0] < ARRIVALS_PERIOD

    simulate(scenario, seed=1)


def test_with_a_fixed_delay_it_fetches_that_long_after_the_last_fetch() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        config = replace(CONFIG, poll_interval="2s", adaptive=False, wakeup="none")
        idle = FetchLoop(relay_context(stage.store, clock=simulation.clock, config=config))
        at = await fetch(idle, stage, until=stage.now + 20)
        assert {round(after - before, 3) for before, after in pairwise(at)} == {2.0}

    simulate(scenario, seed=1)


def test_a_relay_at_a_fixed_delay_delivers_everything() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation, replace(CONFIG, poll_interval="2s", adaptive=False, wakeup="none"))
        async with stage.running():
            for number in range(5):
                stage.record(Event("a", {}, event_id=f"{number}", key="k"))
                await stage.rest(2.5)
        assert [one.message.event_id for one in stage.transport.deliveries] == [f"{number}" for number in range(5)]

    simulate(scenario, seed=1)


class Slow(MemoryMessages):
    """Fetches of ready events that take `latency` seconds after they have read the table."""

    latency = 0.0
    fetching: asyncio.Event

    async def fetch(self, look: FetchQuery) -> Fetched:  # type: ignore[override] # to mypy an `async def` has another type
        found = await super().fetch(look)
        if isinstance(look, Ready) and self.latency:
            self.fetching.set()
            await asyncio.sleep(self.latency)
        return found


def slow(stage: Stage) -> Slow:
    messages = Slow(stage.store._tables)
    messages.fetching = asyncio.Event()
    stage.store.messages = messages
    return messages


def test_a_notification_during_a_fetch_is_not_lost() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation, replace(CONFIG, poll_interval="60s"))
        messages = slow(stage)
        async with stage.running() as relay:
            for number in range(5):
                await stage.rest(300)  # Idle until the pauses have their maximum.
                messages.latency = 0.01
                messages.fetching.clear()
                relay._context.wakeups.fetch()
                await messages.fetching.wait()
                stage.record(Event("a", {}, event_id=f"{number}"))
                await stage.rest(0.1)
                assert len(stage.transport.deliveries) == number + 1
                messages.latency = 0.0

    simulate(scenario, seed=1)
