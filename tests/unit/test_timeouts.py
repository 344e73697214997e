"""Work is given up once it got nowhere for the limit: never before, at the latest a quarter after, in virtual time."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pillarbox import timeouts as module
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.timeouts import ProgressTimeout

LIMIT = 10.0


def told(story: Callable[[Simulation], Awaitable[None]], seed: int = 0) -> None:
    simulate(story, seed=seed)


async def given_up_at(simulation: Simulation, limit: float, progress: Callable[[], object]) -> float:
    with pytest.raises(TimeoutError):
        async with ProgressTimeout(limit, progress):
            await asyncio.Event().wait()
    return simulation.loop.time()


@given(
    begins=st.lists(st.floats(0, 40), min_size=1, max_size=6),
    limits=st.lists(st.sampled_from([0.5, 3.0, LIMIT, 11.0]), min_size=6, max_size=6),
    passing=st.lists(st.floats(0, 60), max_size=10),
)
@example(begins=[0.0, 9.9], limits=[LIMIT] * 6, passing=[])
@example(begins=[0.0, 1.0], limits=[11.0, 0.5] * 3, passing=[0.3])
def test_without_any_progress_it_is_given_up_at_the_limit_whoever_else_waits(
    begins: list[float], limits: list[float], passing: list[float]
) -> None:
    async def one(simulation: Simulation, begin: float, limit: float) -> None:
        await asyncio.sleep(begin)
        entered = simulation.loop.time()
        assert await given_up_at(simulation, limit, lambda: 0) == pytest.approx(entered + limit, abs=1e-9)

    async def soon_over(begin: float) -> None:
        await asyncio.sleep(begin)
        async with ProgressTimeout(LIMIT, lambda: 0):
            await asyncio.sleep(0.01)

    async def story(simulation: Simulation) -> None:
        await asyncio.gather(
            *(one(simulation, begin, limit) for begin, limit in zip(begins, limits, strict=False)),
            *map(soon_over, passing),
        )

    told(story)


@given(begin=st.floats(0, 5), pauses=st.lists(st.floats(0.01, LIMIT - 0.01), max_size=12))
def test_while_it_gets_anywhere_it_goes_on_and_at_most_a_quarter_beyond_the_limit(
    begin: float, pauses: list[float]
) -> None:
    async def story(simulation: Simulation) -> None:
        await asyncio.sleep(begin)
        counted = 0
        last = simulation.loop.time()

        async def get_on() -> None:
            nonlocal counted, last
            for pause in pauses:
                await asyncio.sleep(pause)
                counted, last = counted + 1, simulation.loop.time()

        async def others() -> None:
            async with ProgressTimeout(LIMIT, simulation.loop.time):
                await asyncio.sleep(30)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(others())
            tasks.create_task(get_on())
            at = await given_up_at(simulation, LIMIT, lambda: counted)
        assert counted == len(pauses)
        assert last + LIMIT - 1e-9 <= at <= last + LIMIT * 1.25 + 1e-9

    told(story)


def test_what_ends_soon_leaves_one_timer_and_asks_for_progress_once() -> None:
    asked = 0

    def progress() -> int:
        nonlocal asked
        asked += 1
        return asked

    async def story(simulation: Simulation) -> None:
        before = len(simulation.loop._timers)
        for _ in range(100):
            async with ProgressTimeout(LIMIT, progress), ProgressTimeout(LIMIT + 1, lambda: 0):
                await asyncio.sleep(0)
        assert len(simulation.loop._timers) == before + 1
        assert asked == 100
        await asyncio.sleep(2 * LIMIT)
        assert asked == 100
        assert len(simulation.loop._timers) == before

    told(story)


def test_whoever_else_cancels_the_task_sees_it_cancelled() -> None:
    async def story(simulation: Simulation) -> None:
        waiting = asyncio.create_task(given_up_at(simulation, LIMIT, lambda: 0))
        await asyncio.sleep(1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    told(story)


def test_of_two_within_each_other_the_shorter_ends_and_the_longer_goes_on() -> None:
    async def story(simulation: Simulation) -> None:
        async with ProgressTimeout(LIMIT, lambda: 0):
            assert await given_up_at(simulation, LIMIT / 2, lambda: 0) == LIMIT / 2
            await asyncio.sleep(LIMIT / 2 - 1)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    told(story)


def test_an_error_inside_is_raised_as_it_is() -> None:
    async def story(_: Simulation) -> None:
        with pytest.raises(KeyError):
            async with ProgressTimeout(LIMIT, lambda: 0):
                raise KeyError

    told(story)


def test_a_progress_that_raises_keeps_nobody_else_waiting() -> None:
    asked = iter([0])

    async def story(simulation: Simulation) -> None:
        async def broken() -> None:
            async with ProgressTimeout(LIMIT, lambda: next(asked)):
                await asyncio.sleep(3 * LIMIT)

        raising = asyncio.create_task(broken())
        await asyncio.sleep(0)
        assert await given_up_at(simulation, LIMIT, lambda: 0) == LIMIT
        await raising
        assert simulation.loop.complaints
        simulation.loop.complaints.clear()

    told(story)


def test_nothing_is_kept_of_a_loop_that_is_closed() -> None:
    async def wait() -> None:
        async with ProgressTimeout(LIMIT, lambda: 0):
            await asyncio.sleep(0)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(wait())
    assert loop in module._watches
    loop.close()
    kept = weakref.ref(loop)
    del loop
    gc.collect()
    assert kept() is None
