"""Wake-up: a commit wakes a sleeping relay. It is only a hint, so the tests repeat it until it arrives."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from pillarbox.admin.admin import AdminStore
from pillarbox.testing.conformance.events import event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import join
from pillarbox.testing.waiting import eventually

LONG_SLEEP = 60.0


class WakeupConformance:
    async def test_a_commit_wakes_a_sleeping_relay(self, harness: StoreHarness) -> None:
        relay = await join(harness.store)
        await harness.store.wakeup.request(relay, LONG_SLEEP)
        assert await _woken_by_commits(harness, harness.store) == [True]

    async def test_every_sleeping_relay_may_be_woken(self, harness: StoreHarness) -> None:
        stores = [harness.store, await harness.second_store()]
        for store in stores:
            await store.wakeup.request(await join(store), LONG_SLEEP)
        assert await _woken_by_commits(harness, *stores) == [True, True]

    async def test_a_sleep_without_a_commit_ends_after_its_timeout(self, harness: StoreHarness) -> None:
        relay = await join(harness.store)
        await harness.store.wakeup.request(relay, LONG_SLEEP)
        async with asyncio.timeout(LONG_SLEEP):  # fails if it does not end
            await harness.store.wakeup.wait(0.02)

    async def test_a_relay_that_was_woken_can_sleep_and_be_woken_again(self, harness: StoreHarness) -> None:
        relay = await join(harness.store)
        for _ in range(3):
            await harness.store.wakeup.request(relay, LONG_SLEEP)
            assert await _woken_by_commits(harness, harness.store) == [True]
            await harness.store.wakeup.request(relay, 0)

    async def test_a_cancelled_sleep_does_not_prevent_the_next_wake_up(self, harness: StoreHarness) -> None:
        relay = await join(harness.store)
        await harness.store.wakeup.request(relay, LONG_SLEEP)
        sleep = asyncio.create_task(harness.store.wakeup.wait(LONG_SLEEP))
        await asyncio.sleep(0)
        sleep.cancel()
        await asyncio.wait([sleep], timeout=LONG_SLEEP)
        assert sleep.cancelled()
        await harness.store.wakeup.request(relay, LONG_SLEEP)
        assert await _woken_by_commits(harness, harness.store) == [True]


async def _woken_by_commits(harness: StoreHarness, *stores: AdminStore) -> list[bool]:
    """Commit events until every store's wait has ended; what the waits returned."""
    sleeps = [asyncio.create_task(store.wakeup.wait(LONG_SLEEP)) for store in stores]

    async def all_have_ended() -> bool:
        await harness.commit(event(uuid4().hex))
        return all(sleep.done() for sleep in sleeps)

    await eventually(all_have_ended, pause=0.05)
    return await asyncio.gather(*sleeps)
