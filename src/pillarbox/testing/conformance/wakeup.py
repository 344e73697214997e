"""Wake-up: a commit wakes a sleeping relay. It is only a hint, so the tests repeat it until it arrives."""

from __future__ import annotations

import asyncio
from itertools import count

from pillarbox.testing.conformance.events import event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import join
from pillarbox.testing.waiting import eventually

LONG_NAP = 60.0


class WakeupConformance:
    async def test_a_commit_wakes_a_sleeping_relay(self, harness: StoreHarness) -> None:
        relay = await join(harness.store)
        await harness.store.wakeup.request(relay, LONG_NAP)
        nap = asyncio.create_task(harness.store.wakeup.wait(LONG_NAP))
        numbers = count()

        async def rung() -> bool:
            await harness.commit(event(f"e{next(numbers)}"))
            return nap.done()

        await eventually(rung, pause=0.05)
        assert await nap is True

    async def test_every_sleeping_relay_may_be_woken(self, harness: StoreHarness) -> None:
        stores = [harness.store, await harness.second_store()]
        naps: list[asyncio.Task[bool]] = []
        for store in stores:
            await store.wakeup.request(await join(store), LONG_NAP)
            naps.append(asyncio.create_task(store.wakeup.wait(LONG_NAP)))
        numbers = count()

        async def all_rung() -> bool:
            await harness.commit(event(f"e{next(numbers)}"))
            return all(nap.done() for nap in naps)

        await eventually(all_rung, pause=0.05)
        assert await asyncio.gather(*naps) == [True, True]

    async def test_a_sleep_ends_after_its_timeout(self, harness: StoreHarness) -> None:
        relay = await join(harness.store)
        await harness.store.wakeup.request(relay, LONG_NAP)
        async with asyncio.timeout(LONG_NAP):
            rang = await harness.store.wakeup.wait(0.02)
        assert rang in (True, False)

    async def test_a_relay_that_was_woken_can_sleep_again(self, harness: StoreHarness) -> None:
        relay = await join(harness.store)
        for _ in range(3):
            await harness.store.wakeup.request(relay, LONG_NAP)
            await harness.store.wakeup.request(relay, 0)
        await harness.commit(event("a"))
        await harness.store.wakeup.request("unknown", 0)

    async def test_a_sleep_can_be_cancelled(self, harness: StoreHarness) -> None:
        relay = await join(harness.store)
        await harness.store.wakeup.request(relay, LONG_NAP)
        nap = asyncio.create_task(harness.store.wakeup.wait(LONG_NAP))
        done, _ = await asyncio.wait([nap], timeout=0.02)
        nap.cancel()
        results = await asyncio.gather(nap, return_exceptions=True)
        assert done or isinstance(results[0], asyncio.CancelledError)
        assert isinstance(await harness.store.wakeup.wait(0), bool)
