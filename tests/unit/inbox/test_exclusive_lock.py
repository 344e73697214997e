"""Many side by side, or one alone."""

import asyncio

from pillarbox.inbox.exclusive_lock import ExclusiveLock
from pillarbox.testing.waiting import eventually


class Scene:
    """Who is at work, and the word to leave."""

    def __init__(self) -> None:
        self.floor = ExclusiveLock()
        self.at_work: set[str] = set()
        self.leave: dict[str, asyncio.Event] = {}
        self.tasks: list[asyncio.Task[None]] = []

    def come(self, name: str, *, alone: bool = False) -> None:
        self.leave[name] = asyncio.Event()
        self.tasks.append(asyncio.create_task(self._work(name, alone)))

    async def _work(self, name: str, alone: bool) -> None:
        async with self.floor.taken(exclusive=alone):
            self.at_work.add(name)
            await self.leave[name].wait()
            self.at_work.discard(name)

    async def sees(self, *names: str) -> None:
        await eventually(lambda: self.at_work == set(names))
        for _ in range(5):
            await asyncio.sleep(0)
        assert self.at_work == set(names)


async def test_many_are_at_work_side_by_side() -> None:
    scene = Scene()
    for name in "abc":
        scene.come(name)
    await scene.sees("a", "b", "c")


async def test_one_alone_waits_for_the_others_and_keeps_later_ones_out() -> None:
    scene = Scene()
    scene.come("a")
    await scene.sees("a")
    scene.come("suspect", alone=True)
    scene.come("later")
    await scene.sees("a")
    scene.leave["a"].set()
    await scene.sees("suspect")
    scene.leave["suspect"].set()
    await scene.sees("later")


async def test_two_who_want_to_be_alone_come_one_after_the_other() -> None:
    scene = Scene()
    for name in ("one", "two"):
        scene.come(name, alone=True)
    await scene.sees("one")
    scene.leave["one"].set()
    await scene.sees("two")


async def test_one_who_gives_up_waiting_to_be_alone_lets_the_others_in() -> None:
    scene = Scene()
    scene.come("a")
    await scene.sees("a")
    scene.come("suspect", alone=True)
    scene.come("later")
    await scene.sees("a")
    scene.tasks[1].cancel()
    await scene.sees("a", "later")
