"""A second store on the same data that shares no connection, so that a heartbeat can run in its own thread."""

from __future__ import annotations

import asyncio

from pillarbox.admin.admin import AdminStore
from pillarbox.core.lane import Renewal
from pillarbox.core.outcome import DELIVERED
from pillarbox.testing.conformance.events import event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import LONG, Owner
from pillarbox.testing.conformance.listings import find_event


class SecondStoreConformance:
    async def test_a_heartbeat_runs_in_its_own_thread_and_event_loop(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        beats = 20

        async def renew(store: AdminStore) -> list[Renewal | None]:
            try:
                return [await store.lanes.renew(owner.relay, lease=LONG) for _ in range(beats)]
            finally:
                await store.aclose()

        renewing = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(renew(harness.store.clone()))))
        for _ in range(beats):
            assert await owner.ready() == []
            assert await harness.store.lanes.renew(owner.relay, lease=LONG) is not None
        assert [renewal and renewal.relays for renewal in await renewing] == [1] * beats

    async def test_closing_one_leaves_the_other_open(self, harness: StoreHarness) -> None:
        await harness.commit(event("a"))
        other = harness.store.clone()
        successor = await Owner.of(other)
        await other.aclose()
        await harness.store.lanes.release(successor.relay)
        owner = await Owner.of(harness.store)
        assert len(await owner.ready()) == 1

    async def test_it_has_the_settings_of_the_first_unless_overridden(self, harness: StoreHarness) -> None:
        with_history = harness.store.clone()
        without_history = with_history.clone(history=False)
        also_without = without_history.clone()
        for name, store in {"kept": with_history, "forgotten": without_history, "forgotten too": also_without}.items():
            await harness.commit(event(name))
            owner = await Owner.of(store)
            await owner.settle(DELIVERED, *await owner.ready())
            await store.lanes.release(owner.relay)
            await store.aclose()
        assert len(await find_event(harness.store, "kept")) == 1
        assert await find_event(harness.store, "forgotten") == []
        assert await find_event(harness.store, "also forgotten") == []
