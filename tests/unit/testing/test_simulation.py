"""The simulation: one seed is one schedule, sleeping takes no real time, and a deadlock is an error."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine

import pytest

from pillarbox.core.clock import Clock
from pillarbox.testing.simulation import Deadlock, Runaway, Simulation, SimulationError, simulate


async def _race(simulation: Simulation) -> str:
    """The order in which two tasks take twenty turns."""
    trace: list[str] = []

    async def runner(name: str) -> None:
        for _ in range(5):
            trace.append(name)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for name in "abcd":
            group.create_task(runner(name))
    return "".join(trace)


async def _cancelled_in_some_order(simulation: Simulation) -> str:
    trace: list[str] = []

    async def sleeper(name: str) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            trace.append(name)

    async def failing() -> None:
        await asyncio.sleep(1)
        raise ValueError

    with pytest.raises(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            for name in "abcdefgh":
                group.create_task(sleeper(name))
            group.create_task(failing())
    return "".join(trace)


EventReport = Callable[[Simulation], Coroutine[None, None, str]]


@pytest.mark.parametrize("scenario", [_race, _cancelled_in_some_order])
def test_the_same_seed_gives_the_same_trace(scenario: EventReport) -> None:
    for seed in range(20):
        assert simulate(scenario, seed=seed) == simulate(scenario, seed=seed)


@pytest.mark.parametrize("scenario", [_race, _cancelled_in_some_order])
def test_different_seeds_give_different_interleavings(scenario: EventReport) -> None:
    traces = {simulate(scenario, seed=seed) for seed in range(20)}
    assert len(traces) > 15


def test_a_year_of_sleep_takes_no_real_time() -> None:
    year = 365 * 86_400.0

    async def scenario(simulation: Simulation) -> float:
        await simulation.clock.sleep(year)
        return simulation.clock.monotonic()

    assert simulate(scenario, seed=1, max_time=2 * year) == year  # a real sleep would never end


def test_sleepers_wake_in_the_order_of_their_times() -> None:
    async def scenario(simulation: Simulation) -> list[int]:
        woken: list[int] = []

        async def sleeper(seconds: int) -> None:
            await asyncio.sleep(seconds)
            woken.append(seconds)

        await asyncio.gather(*(sleeper(n) for n in (3, 1, 2)))
        return woken

    assert simulate(scenario, seed=1) == [1, 2, 3]


def test_wall_and_monotonic_time_advance_together() -> None:
    async def scenario(simulation: Simulation) -> None:
        clock: Clock = simulation.clock
        now, elapsed = clock.now(), clock.monotonic()
        await clock.sleep(90)
        assert clock.monotonic() - elapsed == 90
        assert (clock.now() - now).total_seconds() == 90

    simulate(scenario, seed=1)


def test_a_timeout_counts_virtual_time() -> None:
    async def scenario(simulation: Simulation) -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.Event().wait()
        return simulation.clock.monotonic()

    assert simulate(scenario, seed=1) == 30


def test_a_deadlock_is_reported_with_its_tasks_and_the_seed() -> None:
    async def scenario(simulation: Simulation) -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match=r"scenario:\d+ > Event\.wait:\d+") as raised:
        simulate(scenario, seed=4711)
    assert raised.value.__notes__ == ["replay with seed=4711"]


def test_too_much_virtual_time_is_reported() -> None:
    async def scenario(simulation: Simulation) -> None:
        for _ in range(1000):
            await asyncio.sleep(1)

    with pytest.raises(Runaway, match="virtual seconds"):
        simulate(scenario, seed=1, max_time=100)


def test_too_many_steps_are_reported() -> None:
    async def scenario(simulation: Simulation) -> None:
        for _ in range(1000):
            await asyncio.sleep(0)

    with pytest.raises(Runaway, match="steps"):
        simulate(scenario, seed=1, max_steps=100)


def test_an_error_of_the_scenario_is_raised_with_its_seed() -> None:
    async def scenario(simulation: Simulation) -> None:
        raise ValueError("reported")

    with pytest.raises(ValueError, match="reported") as raised:
        simulate(scenario, seed="abc")
    assert raised.value.__notes__ == ["replay with seed='abc'"]


def test_an_uncaught_error_fails_the_simulation() -> None:
    async def scenario(simulation: Simulation) -> None:
        async def failing() -> None:
            raise ValueError("unheard")

        task = asyncio.create_task(failing())
        await asyncio.sleep(1)
        assert task.done()

    with pytest.raises(SimulationError, match="unheard"):
        simulate(scenario, seed=1)


def test_leftover_tasks_are_cancelled_and_can_clean_up() -> None:
    cleaned: list[float] = []

    async def scenario(simulation: Simulation) -> None:
        async def sleeper() -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                await asyncio.sleep(1)
                cleaned.append(simulation.clock.monotonic())

        tasks.append(asyncio.create_task(sleeper()))
        await asyncio.sleep(5)

    tasks: list[asyncio.Task[None]] = []
    simulate(scenario, seed=1)
    assert cleaned == [6.0]


def test_random_numbers_depend_on_the_seed() -> None:
    async def scenario(simulation: Simulation) -> float:
        return simulation.rng.random()

    assert simulate(scenario, seed=1) == simulate(scenario, seed=1) != simulate(scenario, seed=2)


def test_sockets_processes_and_threads_are_rejected() -> None:
    async def connect() -> None:
        await asyncio.open_connection("127.0.0.1", 9)

    async def process() -> None:
        await asyncio.create_subprocess_exec("true")

    async def thread() -> None:
        await asyncio.to_thread(time.monotonic)

    for reach in (connect, process, thread):

        async def scenario(simulation: Simulation) -> None:
            with pytest.raises(NotImplementedError):
                await reach()  # noqa: B023

        simulate(scenario, seed=1)


def test_a_simulation_can_run_inside_a_running_loop() -> None:
    async def scenario(simulation: Simulation) -> float:
        await asyncio.sleep(3)
        return asyncio.get_running_loop().time()

    async def outer() -> None:
        mine = asyncio.get_running_loop()
        assert simulate(scenario, seed=1) == 3
        assert asyncio.get_running_loop() is mine
        await asyncio.sleep(0)

    asyncio.run(outer())
