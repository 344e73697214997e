"""Waits for a peer end once nothing moved for the limit while something waited, in virtual time."""

import asyncio
from contextlib import suppress
from functools import partial
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.timeouts import StallTimeout, StallWatch, within

LIMIT = 10.0
LONG = 100.0


class Peer:
    """Counts what moves, and notes when it counted as stalled."""

    def __init__(self, simulation: Simulation) -> None:
        self._loop = simulation.loop
        self.moved = 0
        self.stalled_at: list[float] = []
        self.watch = StallWatch(LIMIT, lambda: self.moved, lambda: self.stalled_at.append(self._loop.time()))

    async def wait(self, begin: float, seconds: float) -> None:
        await asyncio.sleep(begin)
        with self.watch:
            await asyncio.sleep(seconds)

    async def move(self, at: float) -> None:
        await asyncio.sleep(at)
        self.moved += 1


@given(begin=st.floats(0, 30), others=st.lists(st.floats(0, 0.99 * LIMIT), max_size=5))
def test_without_any_progress_a_peer_stalls_exactly_at_the_limit(begin: float, others: list[float]) -> None:
    """The limit of all waits begins when the last of them does."""

    async def run(simulation: Simulation) -> None:
        peer, start = Peer(simulation), simulation.loop.time()
        later = (peer.wait(begin + other, LONG) for other in others)
        await asyncio.gather(peer.wait(begin, LONG), *later)
        assert peer.stalled_at[0] == pytest.approx(start + begin + max([0.0, *others]) + LIMIT)

    simulate(run, seed=0)


@given(begin=st.floats(0, 30), pauses=st.lists(st.floats(0.01, LIMIT * 0.74), min_size=1, max_size=12))
def test_progress_extends_the_limit(begin: float, pauses: list[float]) -> None:
    async def run(simulation: Simulation) -> None:
        peer, start = Peer(simulation), simulation.loop.time()
        moves = [begin + sum(pauses[: count + 1]) for count in range(len(pauses))]
        await asyncio.gather(peer.wait(begin, moves[-1] + LONG), *map(peer.move, moves))
        stalled = peer.stalled_at[0]
        assert stalled >= start + begin + LIMIT - 1e-6
        assert LIMIT - 1e-6 <= stalled - (start + moves[-1]) <= 1.25 * LIMIT + 1e-6

    simulate(run, seed=0)


@given(waits=st.lists(st.tuples(st.floats(0, 2 * LIMIT), st.floats(0, 0.99 * LIMIT)), min_size=1, max_size=8))
def test_each_wait_without_another_before_it_has_the_whole_limit(waits: list[tuple[float, float]]) -> None:
    async def run(simulation: Simulation) -> None:
        peer = Peer(simulation)
        for pause, seconds in waits:
            await peer.wait(pause + 1e-3, seconds)
        await asyncio.sleep(LONG)
        assert peer.stalled_at == []

    simulate(run, seed=0)


@given(ends=st.lists(st.floats(0.01, LIMIT * 0.74), min_size=1, max_size=12))
def test_a_peer_that_stops_responding_stalls_after_the_last_wait_began(ends: list[float]) -> None:
    async def run(simulation: Simulation) -> None:
        peer = Peer(simulation)
        for end in ends:
            await peer.wait(0, end)
            peer.moved += 1
        began = simulation.loop.time()
        await peer.wait(0, LONG)
        assert peer.stalled_at[0] == pytest.approx(began + LIMIT)

    simulate(run, seed=0)


def test_many_short_waits_set_one_timer() -> None:
    checks = 0

    def progress() -> int:
        nonlocal checks
        checks += 1
        return checks

    async def run(simulation: Simulation) -> None:
        watch, before = StallWatch(LIMIT, progress, lambda: None), len(simulation.loop._timers)
        for _ in range(100):
            with watch:
                await asyncio.sleep(0)
        assert len(simulation.loop._timers) == before + 1
        await asyncio.sleep(2 * LIMIT)
        assert checks == 100, "progress is read when the first wait begins, and never while nothing waits"
        assert len(simulation.loop._timers) == before

    simulate(run, seed=0)


async def timed_out_at(simulation: Simulation, shared: StallTimeout) -> float:
    with pytest.raises(TimeoutError):
        await shared.wait(asyncio.Event().wait())
    return simulation.loop.time()


def test_every_task_that_waits_for_a_stalled_peer_times_out() -> None:
    async def run(simulation: Simulation) -> None:
        timeout = StallTimeout(LIMIT, lambda: 0)
        start = simulation.loop.time()

        async def later() -> float:
            await asyncio.sleep(LIMIT / 2)
            return await timed_out_at(simulation, timeout)

        ends = await asyncio.gather(timed_out_at(simulation, timeout), later())
        assert list(ends) == [start + 1.5 * LIMIT] * 2
        # It serves the waits that follow as well.
        assert await timed_out_at(simulation, timeout) == start + 2.5 * LIMIT

    simulate(run, seed=0)


def test_a_wait_that_does_not_end_leaves_no_later_one_without_a_limit() -> None:
    async def hang() -> None:
        for _ in range(2):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(LONG)

    async def run(simulation: Simulation) -> None:
        shared = StallTimeout(LIMIT, lambda: 0)
        hanging = asyncio.create_task(shared.wait(hang()))
        await asyncio.sleep(LIMIT + 1)
        began = simulation.loop.time()
        assert await timed_out_at(simulation, shared) == began + LIMIT
        await asyncio.wait([hanging])

    simulate(run, seed=0)


def test_a_result_and_an_error_pass_through() -> None:
    async def fail() -> None:
        raise KeyError

    async def run(_: Simulation) -> None:
        timeout = StallTimeout(LIMIT, lambda: 0)
        assert await timeout.wait(asyncio.sleep(LIMIT - 1, "result")) == "result"
        with pytest.raises(KeyError):
            await timeout.wait(fail())

    simulate(run, seed=0)


@pytest.mark.parametrize("after", [1.0, LIMIT], ids=["before the limit", "at the limit"])
def test_a_task_that_is_cancelled_from_elsewhere_stays_cancelled(after: float) -> None:
    async def run(simulation: Simulation) -> None:
        def cancel() -> None:
            if simulation.loop.time() >= after:
                waiting.cancel()

        waiting = asyncio.create_task(timed_out_at(simulation, StallTimeout(LIMIT, cancel)))
        with pytest.raises(asyncio.CancelledError):
            await waiting

    simulate(run, seed=0)


def test_a_task_that_timed_out_is_not_left_cancelled() -> None:
    async def run(simulation: Simulation) -> None:
        await timed_out_at(simulation, StallTimeout(LIMIT, lambda: 0))
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(1)

    simulate(run, seed=0)


def test_a_progress_that_raises_is_reported_and_counts_as_none() -> None:
    async def run(simulation: Simulation) -> None:
        start, timeout = simulation.loop.time(), StallTimeout(LIMIT, lambda: 1 // 0)
        assert await timed_out_at(simulation, timeout) == start + LIMIT
        assert simulation.loop.unhandled_errors
        simulation.loop.unhandled_errors.clear()

    simulate(run, seed=0)


def test_a_stalled_that_raises_leaves_later_waits_their_limit() -> None:
    stalls = 0

    def stalled() -> None:
        nonlocal stalls
        stalls += 1
        raise RuntimeError("stalled")

    async def run(simulation: Simulation) -> None:
        with StallWatch(LIMIT, lambda: 0, stalled):
            await asyncio.sleep(2.5 * LIMIT)
        assert stalls == 2
        simulation.loop.unhandled_errors.clear()

    simulate(run, seed=0)


def test_work_that_takes_longer_than_the_limit_to_end_still_times_out() -> None:
    async def slow_to_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(3):
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(2 * LIMIT)

    async def run(_: Simulation) -> None:
        with pytest.raises(TimeoutError):
            await StallTimeout(LIMIT, lambda: 0).wait(slow_to_end())
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    simulate(run, seed=0)


def test_work_that_returns_although_it_timed_out_leaves_its_task_uncancelled() -> None:
    async def answers_anyway() -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "result"

    async def run(_: Simulation) -> None:
        assert await StallTimeout(LIMIT, lambda: 0).wait(answers_anyway()) == "result"
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    simulate(run, seed=0)


def test_progress_that_was_made_while_the_loop_was_blocked_counts() -> None:
    async def run(simulation: Simulation) -> None:
        peer = Peer(simulation)
        with peer.watch:
            await asyncio.sleep(0)
            simulation.loop.block(2 * LIMIT)
            peer.moved += 1
            await asyncio.sleep(LIMIT / 2)
        assert peer.stalled_at == []

    simulate(run, seed=0)


def test_a_plain_limit_ends_at_the_limit() -> None:
    async def run(simulation: Simulation) -> None:
        start = simulation.loop.time()
        with pytest.raises(TimeoutError):
            await within(LIMIT, asyncio.Event().wait())
        assert simulation.loop.time() == start + LIMIT
        assert await within(LIMIT, asyncio.sleep(1, "result")) == "result"

    simulate(run, seed=0)


async def test_a_watch_that_is_no_longer_used_keeps_nothing_in_memory() -> None:
    """Its timer is still set: a transport may wait for many large batches until then."""

    class Batch:
        """What the functions of a watch refer to."""

    batch = Batch()
    freed = ref(batch)
    with StallWatch(LONG, partial(id, batch), lambda: None):
        pass
    del batch
    assert freed() is None
