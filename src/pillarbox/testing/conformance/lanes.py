"""Lanes: one lease per relay and one owner per lane, also when relays acquire concurrently."""

from __future__ import annotations

import asyncio

from pillarbox.core.lane import OwnedLane, RelaySession
from pillarbox.core.outcome import DELIVERED
from pillarbox.testing.conformance.capability import needing
from pillarbox.testing.conformance.events import event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import LONG, Owner, join
from pillarbox.testing.waiting import eventually


class LanesConformance:
    async def test_the_store_reports_its_number_of_lanes(self, harness: StoreHarness) -> None:
        store = harness.store
        assert store.lanes.count == store.capabilities.lanes
        owner = await Owner.of(store)
        assert owner.lanes == list(range(store.lanes.count))

    async def test_a_relay_gets_no_more_lanes_than_it_asked_for(self, harness: StoreHarness) -> None:
        relay = await join(harness.store)
        assert await harness.store.lanes.acquire(relay, limit=0) == []
        assert len(await harness.store.lanes.acquire(relay, limit=1)) == 1

    async def test_a_lane_with_a_live_owner_is_not_acquired_again(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        assert await owner.acquire(harness.store.lanes.count) == []
        other = await Owner.of(harness.store)
        assert other.owned == []

    async def test_concurrent_relays_never_share_a_lane(self, harness: StoreHarness) -> None:
        stores = [harness.store, await harness.second_store()]
        for _ in range(5):
            relays = [(stores[n % 2], await join(stores[n % 2])) for n in range(8)]
            taken = await asyncio.gather(
                *(store.lanes.acquire(relay, limit=1 + n * 3) for n, (store, relay) in enumerate(relays))
            )
            lanes = [owned.lane for lanes in taken for owned in lanes]
            assert len(lanes) == len(set(lanes))
            for store, relay in relays:
                await store.lanes.release(relay)

    async def test_concurrent_relays_acquire_all_lanes(self, harness: StoreHarness) -> None:
        stores = [harness.store, await harness.second_store()]
        owners = [await Owner.of(stores[n % 2], limit=0) for n in range(4)]
        while (await asyncio.gather(*(owner.acquire(3) for owner in owners))) != [[], [], [], []]:
            pass
        lanes = [lane for owner in owners for lane in owner.lanes]
        assert sorted(lanes) == list(range(harness.store.lanes.count))

    async def test_each_change_of_owner_raises_the_epoch(self, harness: StoreHarness) -> None:
        first = await Owner.of(harness.store)
        await harness.store.lanes.release(first.relay, first.epochs)
        second = await Owner.of(harness.store)
        third = await second.taken_over()
        for lane in first.lanes:
            assert first.epochs[lane] < second.epochs[lane] < third.epochs[lane]

    async def test_a_relay_whose_session_ended_loses_its_lanes_before_its_lease_ends(
        self, harness: StoreHarness
    ) -> None:
        if not harness.store.capabilities.survives_restart:
            return  # The tables of such a store end with its process.
        heartbeat = harness.store.clone()
        dead = await Owner.of(harness.store)
        await heartbeat.lanes.renew(dead.relay, lease=LONG)
        successor = await Owner.of(harness.store, limit=0)

        async def ended() -> list[RelaySession]:
            return await harness.store.lanes.ended(successor.relay)

        assert await ended() == []
        await heartbeat.aclose()
        sessions = await eventually(ended, within=60)
        assert [session.relay for session in sessions] == [dead.relay]
        assert await successor.acquire(harness.store.lanes.count) == []
        assert await harness.store.lanes.expire(sessions) == 1
        assert len(await successor.acquire(harness.store.lanes.count)) == len(dead.lanes)
        assert await harness.store.lanes.renew(dead.relay, lease=LONG) is None

    async def test_a_relay_with_a_new_session_keeps_its_lanes(self, harness: StoreHarness) -> None:
        if not harness.store.capabilities.survives_restart:
            return
        owner = await Owner.of(harness.store)
        heartbeat, reconnected = harness.store.clone(), harness.store.clone()
        await heartbeat.lanes.renew(owner.relay, lease=LONG)
        successor = await Owner.of(harness.store, limit=0)
        await heartbeat.aclose()

        async def ended() -> list[RelaySession]:
            return await harness.store.lanes.ended(successor.relay)

        sessions = await eventually(ended, within=60)
        await reconnected.lanes.renew(owner.relay, lease=LONG)
        assert await harness.store.lanes.expire(sessions) == 0
        assert await successor.acquire(harness.store.lanes.count) == []
        await reconnected.aclose()

    async def test_released_lanes_are_free_at_once(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        [lane, *_] = owner.lanes
        await harness.store.lanes.release(owner.relay, {lane: owner.epochs[lane]})
        other = await Owner.of(harness.store)
        assert other.lanes == [lane]
        assert other.owned[0].crashes == 0

    async def test_a_release_under_an_old_epoch_does_not_affect_the_new_owner(self, harness: StoreHarness) -> None:
        stale = await Owner.of(harness.store)
        owner = await stale.taken_over()
        await harness.store.lanes.release(stale.relay, stale.epochs)
        await harness.store.lanes.release(owner.relay, stale.epochs)
        assert (await Owner.of(harness.store)).owned == []
        assert (await owner.settle(DELIVERED)).lost == frozenset()

    async def test_a_relay_releases_only_what_it_owns(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        other = await Owner.of(harness.store)
        await harness.store.lanes.release(other.relay, owner.epochs)
        assert (await Owner.of(harness.store)).owned == []

    async def test_leaving_releases_all_lanes_and_is_not_a_crash(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.store.lanes.release(owner.relay)
        await harness.store.lanes.release(owner.relay)
        successor = await Owner.of(harness.store)
        assert successor.lanes == owner.lanes
        assert {owned.crashes for owned in successor.owned} == {0}
        assert await harness.store.lanes.renew(owner.relay, lease=LONG) is None

    async def test_a_relay_whose_lease_expired_loses_its_lanes(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await owner.expire()
        successor = await Owner.of(harness.store)
        assert successor.lanes == owner.lanes

    async def test_a_renewal_in_time_keeps_the_lanes(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await owner.expire()
        assert await harness.store.lanes.renew(owner.relay, lease=LONG) is not None
        assert (await Owner.of(harness.store)).owned == []

    async def test_an_expired_relay_cannot_renew(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await owner.taken_over()
        assert await harness.store.lanes.renew(owner.relay, lease=LONG) is None

    async def test_an_unknown_relay_cannot_renew(self, harness: StoreHarness) -> None:
        assert await harness.store.lanes.renew("unknown", lease=LONG) is None

    async def test_a_relay_without_a_lease_gets_no_lanes(self, harness: StoreHarness) -> None:
        lanes = harness.store.lanes
        assert await lanes.acquire("unknown", limit=lanes.count) == []
        expired = await join(harness.store, lease=0)
        assert await lanes.acquire(expired, limit=lanes.count) == []
        owner = await Owner.of(harness.store)
        await owner.taken_over()
        assert await lanes.acquire(owner.relay, limit=lanes.count) == []

    async def test_a_renewal_returns_the_number_of_live_relays(self, harness: StoreHarness) -> None:
        store = harness.store
        first, second = await join(store), await join(store)
        expired = await join(store, lease=0)
        renewal = await store.lanes.renew(first, lease=LONG)
        assert renewal is not None
        assert renewal.relays == 2
        await store.lanes.release(second)
        await store.lanes.release(expired)
        renewal = await store.lanes.renew(first, lease=LONG)
        assert renewal is not None
        assert renewal.relays == 1

    async def test_a_renewal_returns_the_breakers_of_other_live_relays(self, harness: StoreHarness) -> None:
        lanes = harness.store.lanes
        first, second, third = [await join(harness.store) for _ in range(3)]
        await lanes.renew(second, lease=LONG, breakers={"orders": "open", "mailer": "closed"})
        await lanes.renew(third, lease=LONG, breakers={"orders": "half-open"})
        renewal = await lanes.renew(first, lease=LONG, breakers={"orders": "open"})
        assert renewal is not None
        breakers = sorted(sorted(other.items()) for other in renewal.others)
        assert breakers == [[("mailer", "closed"), ("orders", "open")], [("orders", "half-open")]]
        await lanes.renew(third, lease=0, breakers={"orders": "closed"})
        await lanes.renew(second, lease=LONG)
        renewal = await lanes.renew(first, lease=LONG)
        assert renewal is not None
        assert renewal.others == ({},)

    @needing("listings")
    async def test_a_renewal_shows_why_a_relay_makes_no_progress_until_the_next(self, harness: StoreHarness) -> None:
        relay, other = await join(harness.store), await join(harness.store)
        for stalled in ("", "no send begins; restart it", ""):
            await harness.store.lanes.renew(relay, lease=LONG, stalled=stalled)
            shown = {one.id: one.stalled for one in (await harness.store.admin.inspection.overview()).relays}
            assert shown == {relay: stalled, other: ""}

    async def test_a_relay_that_just_joined_has_no_breakers_yet(self, harness: StoreHarness) -> None:
        relay, _ = await join(harness.store), await join(harness.store)
        renewal = await harness.store.lanes.renew(relay, lease=LONG)
        assert renewal is not None
        assert (renewal.relays, renewal.others) == (2, ({},))

    async def test_crashes_are_counted_until_a_settlement(self, harness: StoreHarness) -> None:
        await harness.commit(event("a", "k"))
        owner = await Owner.of(harness.store)
        [message] = await owner.ready()
        lane = message.lane
        assert _crashes(owner, lane) == 0
        owner = await owner.taken_over()
        assert _crashes(owner, lane) == 1
        owner = await owner.taken_over()
        assert _crashes(owner, lane) == 2
        await owner.settle(DELIVERED, message)
        owner = await owner.taken_over()
        assert _crashes(owner, lane) == 1

    async def test_crashes_are_cleared_by_the_owner_of_a_lane(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        former = owner.epochs
        for _ in range(2):
            owner = await owner.taken_over()
        await harness.store.lanes.clear_crashes(former)
        owner = await owner.taken_over()
        assert {owned.crashes for owned in owner.owned} == {3}
        await harness.store.lanes.clear_crashes(owner.epochs)
        owner = await owner.taken_over()
        assert {owned.crashes for owned in owner.owned} == {1}

    async def test_a_takeover_in_parts_counts_every_lane_as_crashed(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await owner.expire()
        successor = await Owner.of(harness.store, limit=0)
        taken: list[OwnedLane] = []
        while more := await successor.acquire(7):
            taken += more
        assert len(taken) == harness.store.lanes.count
        assert {owned.crashes for owned in taken} == {1}


def _crashes(owner: Owner, lane: int) -> int:
    return next(owned.crashes for owned in owner.owned if owned.lane == lane)
