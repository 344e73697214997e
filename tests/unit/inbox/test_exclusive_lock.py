"""The lock has many shared holders or one exclusive holder."""

import asyncio

from pillarbox.inbox.exclusive_lock import ExclusiveLock
from pillarbox.testing.waiting import eventually


class Holders:
    """The current holders of the lock."""

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


async def test_shared_holders_run_concurrently() -> None:
    scene = Holders()
    for name in "abc":
        scene.come(name)
    await scene.sees("a", "b", "c")


async def test_an_exclusive_holder_waits_for_shared_ones_and_blocks_later_ones() -> None:
    scene = Holders()
    scene.come("a")
    await scene.sees("a")
    scene.come("exclusive", alone=True)
    scene.come("later")
    await scene.sees("a")
    scene.leave["a"].set()
    await scene.sees("exclusive")
    scene.leave["exclusive"].set()
    await scene.sees("later")


async def test_exclusive_holders_run_one_after_the_other() -> None:
    scene = Holders()
    for name in ("one", "two"):
        scene.come(name, alone=True)
    await scene.sees("one")
    scene.leave["one"].set()
    await scene.sees("two")


async def test_a_cancelled_exclusive_request_unblocks_the_others() -> None:
    scene = Holders()
    scene.come("a")
    await scene.sees("a")
    scene.come("exclusive", alone=True)
    scene.come("later")
    await scene.sees("a")
    scene.tasks[1].cancel()
    await scene.sees("a", "later")
