"""Room for unconfirmed messages: never more than there is, first come, first served, nothing lost to cancellation."""

import asyncio
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.transports.rabbitmq.window import Window


class Guests:
    """Whoever holds places, and in which order they came in."""

    def __init__(self, places: int) -> None:
        self.room = Window(places)
        self.inside = 0
        self.most = 0
        self.came: list[int] = []

    async def stay(self, number: int, count: int, seconds: float) -> None:
        await self.room.take(count)
        self.came.append(number)
        self.inside += count
        self.most = max(self.most, self.inside)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.inside -= count
            self.room.give(count)


async def test_a_small_request_does_not_overtake_a_large_one() -> None:
    guests = Guests(10)
    await asyncio.gather(*(guests.stay(n, count, 0) for n, count in enumerate([6, 8, 1, 1])))
    assert guests.came == [0, 1, 2, 3]


@given(
    stays=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3), st.booleans()), max_size=20),
    seed=st.integers(0, 1000),
)
def test_room_is_never_exceeded_and_never_lost(stays: list[tuple[int, int, bool]], seed: int) -> None:
    async def run(simulation: Simulation) -> None:
        guests = Guests(5)
        tasks = [asyncio.create_task(guests.stay(n, count, seconds)) for n, (count, seconds, _) in enumerate(stays)]
        for task, (*_, cancelled) in zip(tasks, stays, strict=True):
            await asyncio.sleep(0.5)
            if cancelled:
                task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        assert guests.most <= 5
        assert guests.inside == 0
        async with asyncio.timeout(1):
            await guests.room.take(5)

    simulate(run, seed=seed)
