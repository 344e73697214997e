"""Inspection: the overview of an outbox."""

from __future__ import annotations

import pytest

from pillarbox.admin.states import EventState
from pillarbox.core.message import Held
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

    async def test_pending_messages_are_grouped_by_destination_and_state(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"), event("b"), event("c"), event("sent"), event("later", available_at=at(HOUR)))
        ready = {message.event_id: message for message in await owner.ready()}
        await owner.settle(Retry(delay=HOUR, error="no"), ready["a"], to="mail")
        await owner.hold(Held.PARKED, ready["b"], to="mail")
        await owner.settle(DELIVERED, ready["sent"], to="orders")
        load = await harness.store.admin.inspection.destinations()
        groups = {(one.destination, one.event_type, one.state): one for one in load.pending}
        assert {name: group.messages for name, group in groups.items()} == {
            ("mail", "", EventState.RETRYING): 1,
            ("mail", "", EventState.PARKED): 1,
            ("", "thing.happened", EventState.READY): 1,
            ("", "thing.happened", EventState.DELAYED): 1,
        }
        parked, delayed = groups["mail", "", EventState.PARKED], groups["", "thing.happened", EventState.DELAYED]
        assert (parked.recent, delayed.recent, delayed.oldest, delayed.first_recent) == (1, 1, None, None)
        assert parked.oldest is not None
        assert 0 <= parked.oldest < HOUR
        assert [(one.destination, one.messages) for one in load.delivered] == [("orders", 1)]
        assert 0 <= load.delivered[0].first < HOUR
        assert (load.scanned, load.changes) == (4, [])

    async def test_a_large_backlog_is_grouped_from_both_ends(
        self, harness: StoreHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pillarbox.stores.admin.inspection.SCANNED", 4)
        for number in range(7):
            await harness.commit(event(f"e{number}", destination=str(number)))
        load = await harness.store.admin.inspection.destinations()
        # A store in memory reads all of them.
        assert {one.destination for one in load.pending} in ({"0", "1", "5", "6"}, {*"0123456"})

    @needing("requests")
    async def test_an_override_has_an_author_and_a_time(self, harness: StoreHarness) -> None:
        await harness.store.admin.requests.override("mail", paused=True, by="ada")
        await harness.store.admin.requests.override("orders", rate_limit=5, by="bob")
        await harness.store.admin.requests.override("orders", rate_limit=None, by="bob")
        [change] = (await harness.store.admin.inspection.destinations()).changes
        assert (change.destination, change.by) == ("mail", "ada")
        assert at(-HOUR) < change.at < at(HOUR)

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
