"""Inspection: the overview of an outbox."""

from __future__ import annotations

from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.testing.conformance.capability import needing
from pillarbox.testing.conformance.events import HOUR, at, event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import LONG, Owner


@needing("listings")
class InspectionConformance:
    async def test_an_empty_outbox_has_lanes_and_nothing_else(self, harness: StoreHarness) -> None:
        seen = await harness.store.admin.inspection.overview()
        assert (seen.backlog, seen.oldest, seen.exact, seen.dead, seen.blocked, seen.relays) == (
            0,
            None,
            True,
            0,
            0,
            [],
        )
        assert [lane.lane for lane in seen.lanes] == list(range(harness.store.lanes.count))
        assert {lane.owner for lane in seen.lanes} == {None}

    async def test_the_backlog_is_neither_delivered_nor_dead(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("ready"), event("later"), event("done"), event("dead"))
        for message in await owner.ready():
            if message.event_id == "later":
                await owner.settle(Retry(delay=HOUR, error="no"), message)
            elif message.event_id == "done":
                await owner.settle(DELIVERED, message)
            elif message.event_id == "dead":
                await owner.settle(Dead(error="no"), message)
        seen = await harness.store.admin.inspection.overview()
        assert (seen.backlog, seen.exact, seen.dead) == (2, True, 1)
        assert seen.oldest is not None
        assert 0 <= seen.oldest < HOUR

    async def test_blocked_keys_are_counted_separately(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("head", key="k"), event("other", key="free"))
        head, _ = await owner.ready()
        await owner.settle(Dead(error="no", block=True), head)
        seen = await harness.store.admin.inspection.overview()
        assert (seen.backlog, seen.dead, seen.blocked) == (2, 0, 1)

    async def test_the_count_is_exact_up_to_the_requested_limit(self, harness: StoreHarness) -> None:
        await harness.commit(*(event(f"e{n}") for n in range(3)))
        seen = await harness.store.admin.inspection.overview(counted=3)
        assert (seen.backlog, seen.exact) == (3, True)
        seen = await harness.store.admin.inspection.overview(counted=2)
        assert seen.backlog >= 3

    async def test_the_age_of_a_delayed_event_starts_when_it_is_due(self, harness: StoreHarness) -> None:
        await harness.commit(event("later", available_at=at(HOUR)))
        seen = await harness.store.admin.inspection.overview()
        assert (seen.backlog, seen.oldest, seen.oldest_event) == (1, None, None)
        await harness.commit(event("due", available_at=at(-HOUR)))
        seen = await harness.store.admin.inspection.overview()
        assert seen.oldest is not None
        assert HOUR <= seen.oldest < 2 * HOUR
        assert seen.oldest_event == "due"

    async def test_lanes_show_their_owner_and_relays_their_lease_and_breakers(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store, name="relay-a")
        await harness.store.lanes.renew(owner.relay, lease=LONG, breakers={"orders": "open"})
        seen = await harness.store.admin.inspection.overview()
        assert {lane.owner for lane in seen.lanes} == {owner.relay}
        assert {lane.lane: lane.epoch for lane in seen.lanes} == owner.epochs
        [relay] = seen.relays
        [alone] = await harness.store.admin.inspection.relays()
        # Taken one after the other: only times may differ.
        assert alone._replace(lease=0.0, age=0.0) == relay._replace(lease=0.0, age=0.0)
        assert (relay.id, relay.name, relay.breakers) == (owner.relay, "relay-a", {"orders": "open"})
        assert 0 < relay.lease <= LONG

    async def test_an_expired_lease_is_shown_until_it_is_taken_over(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await owner.expire()
        [relay] = (await harness.store.admin.inspection.overview()).relays
        assert relay.lease <= 0
