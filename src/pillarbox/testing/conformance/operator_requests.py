"""Operator requests: what operators see, and what they request from the owner of a lane."""

from __future__ import annotations

import pytest

from pillarbox.admin.listing import EventFilter
from pillarbox.admin.requests import Action
from pillarbox.core.lane import InFlightMessage
from pillarbox.core.message import Held
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.testing.conformance.capability import needing, needs
from pillarbox.testing.conformance.events import HOUR, at, event, keyed_events
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import LONG, Owner, ids, queue_of
from pillarbox.testing.conformance.listings import find_event

LATER = Retry(delay=HOUR, error="no")


@needing("listings", "requests")
class RequestConformance:
    async def test_a_request_alone_changes_nothing(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        before = await owner.ready()
        await harness.store.admin.requests.add("discard", [("a", "")], by="op")
        assert await owner.ready() == before

    async def test_event_details_show_a_request_until_it_was_executed(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", destination="x"), event("b"))
        await harness.store.admin.requests.add("reschedule", [("a", "x"), ("b", "")], delay=HOUR, by="ada")
        await harness.store.admin.requests.add("discard", [("a", "x")], by="bob")
        first, second = (await harness.store.admin.events.show("a")).requests
        assert (first.action, first.destination, first.delay, first.requested_by) == ("reschedule", "x", HOUR, "ada")
        assert (second.action, second.destination, second.delay, second.requested_by) == ("discard", "x", 0, "bob")
        assert at(-HOUR) < first.requested_at <= second.requested_at < at(HOUR)
        while await owner.execute_requests():
            pass
        assert (await harness.store.admin.events.show("a")).requests == []

    async def test_request_ids_increase_in_the_order_of_requests(self, harness: StoreHarness) -> None:
        requests = await harness.store.admin.requests.add("retry", [("b", ""), ("a", "x"), ("a", "")])
        requests += await harness.store.admin.requests.add("retry", [("b", "")])
        assert len(requests) == 4
        assert requests == sorted(set(requests))

    async def test_an_empty_request_requests_nothing(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        assert await harness.store.admin.requests.add("discard", []) == []
        assert await owner.execute_requests() == 0

    async def test_several_messages_can_be_requested_at_once(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        names = ["plain", "it's", '"quoted"', "\\", "é", "[1, 2]", "null"]
        await harness.commit(*(event(name, destination="x,y") for name in names), event("other"))
        await harness.store.admin.requests.add("reschedule", [(name, "x,y") for name in names], delay=HOUR, by="op")
        assert await owner.execute_requests() == len(names)
        assert ids(await owner.ready()) == ["other"]

    async def test_a_retry_is_due_at_once_with_its_attempts_at_zero(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        await owner.settle(LATER, *await owner.ready(), to="x")
        await harness.store.admin.requests.add("retry", [("a", "x")], by="op")
        assert await owner.execute_requests() == 1
        [message] = await owner.due()
        assert (message.event_id, message.attempts, message.held) == ("a", 0, None)

    async def test_a_blocked_message_that_is_retried_stays_first_of_its_key(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b", "c"))
        a, b, _ = await owner.ready()
        await owner.settle(Dead(error="no", block=True), a)
        await owner.hold(Held.WAITING, b)
        await harness.store.admin.requests.add("retry", [("a", "")])
        assert await owner.execute_requests() == 1
        [first] = await owner.due()
        assert (first.event_id, first.id, first.attempts, first.must_wait) == ("a", a.id, 0, False)
        assert [(m.event_id, m.must_wait) for m in await owner.ready()] == [("c", True)]
        assert await owner.orphaned_queues() == []
        [row] = await find_event(harness.store, "a")
        assert row.status == "PENDING"
        await owner.settle(DELIVERED, first)
        assert ids(await owner.waiting(queue_of(b))) == ["b"]

    async def test_a_discarded_message_is_deleted_and_its_key_continues(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b"))
        a, b = await owner.ready()
        await owner.settle(Dead(error="no", block=True), a)
        await harness.store.admin.requests.add("discard", [("a", "")])
        assert await owner.execute_requests() == 1
        assert await owner.ready() == [b]
        assert await find_event(harness.store, "a") == []

    async def test_a_rescheduled_message_is_due_at_its_new_time(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("soon"), event("late"))
        await owner.settle(LATER, *await owner.ready())
        await harness.store.admin.requests.add("reschedule", [("soon", "")], delay=0)
        await harness.store.admin.requests.add("reschedule", [("late", "")], delay=HOUR)
        assert await owner.execute_requests() == 2
        [message] = await owner.due()
        assert (message.event_id, message.attempts) == ("soon", 1)

    async def test_a_message_rescheduled_beyond_the_time_range_is_delayed_to_its_end(
        self, harness: StoreHarness
    ) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        await harness.store.admin.requests.add("reschedule", [("a", "")], delay=1e18)
        assert await owner.execute_requests() == 1
        assert (await owner.ready(), await owner.due()) == ([], [])

    async def test_a_ready_message_can_be_rescheduled(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        await harness.store.admin.requests.add("reschedule", [("a", "")], delay=HOUR)
        assert await owner.execute_requests() == 1
        assert await owner.ready() == []
        assert await owner.due() == []

    async def test_a_rescheduled_message_holds_its_key_back(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b"))
        await harness.store.admin.requests.add("reschedule", [("a", "")], delay=HOUR)
        assert await owner.execute_requests() == 1
        assert [(m.event_id, m.must_wait) for m in await owner.ready()] == [("b", True)]

    @pytest.mark.parametrize("action", ["retry", "reschedule"])
    async def test_an_operator_request_is_not_an_attempt(self, harness: StoreHarness, action: Action) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b"))
        await harness.store.admin.requests.add(action, [("a", "")])
        assert await owner.execute_requests() == 1
        assert [m.must_wait for m in await owner.ready()] == [True]
        events = harness.store.admin.events
        assert [one.retry_count for one in (await events.list(EventFilter(), limit=10)).events] == [0, 0]
        assert [one.retry_count for one in (await events.show("a")).events] == [0]
        [row] = await find_event(harness.store, "a")
        assert (row.attempts, row.retry_count) == (0, 0)
        await owner.settle(DELIVERED, *await owner.due())
        assert [one.retry_count for one in (await events.show("a")).events] == [0]

    async def test_a_request_for_a_message_that_is_not_pending_is_closed(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        await owner.settle(DELIVERED, *await owner.ready())
        await harness.store.admin.requests.add("retry", [("a", "")])
        await harness.store.admin.requests.add("discard", [("never there", "")])
        assert await owner.execute_requests() == 2
        assert await owner.execute_requests() == 0
        assert [row.status for row in await find_event(harness.store, "a")] == ["PUBLISHED"]

    async def test_a_request_is_executed_once(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        await owner.settle(LATER, *await owner.ready())
        await harness.store.admin.requests.add("retry", [("a", "")])
        assert await owner.execute_requests() == 1
        await owner.settle(LATER, *await owner.due())
        assert await owner.execute_requests() == 0
        assert await owner.due() == []

    async def test_requests_for_one_message_are_executed_in_order(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"), event("b"))
        await harness.store.admin.requests.add("reschedule", [("a", "")], delay=HOUR)
        await harness.store.admin.requests.add("retry", [("a", "")])
        await harness.store.admin.requests.add("discard", [("b", "")])
        await harness.store.admin.requests.add("retry", [("b", "")])
        while await owner.execute_requests():
            pass
        assert ids(await owner.due()) == ["a"]
        assert await find_event(harness.store, "b") == []

    async def test_a_request_names_one_destination(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", destination="x"), event("a", destination="y"))
        await harness.store.admin.requests.add("discard", [("a", "x")])
        assert await owner.execute_requests() == 1
        assert [m.destination for m in await owner.ready()] == ["y"]

    async def test_only_the_owner_of_the_lane_executes_a_request(self, harness: StoreHarness) -> None:
        needs(harness, "several_lanes")
        await harness.commit(event("a"))
        everything = await Owner.of(harness.store)
        [message] = await everything.ready()
        await harness.store.lanes.release(everything.relay, {message.lane: everything.epochs[message.lane]})
        others = Owner(
            harness.store,
            everything.relay,
            [owned for owned in everything.owned if owned.lane != message.lane],
        )
        owner = await Owner.of(harness.store)
        assert owner.lanes == [message.lane]
        await harness.store.admin.requests.add("discard", [("a", "")])
        assert await others.execute_requests() == 0
        assert await owner.ready() == [message]
        assert await owner.execute_requests() == 1
        assert await owner.ready() == []

    async def test_requests_for_other_lanes_do_not_block_own_requests(self, harness: StoreHarness) -> None:
        needs(harness, "several_lanes")
        await harness.commit(*(event(f"{n}") for n in range(20)))
        everything = await Owner.of(harness.store)
        [*others, mine] = await everything.ready()
        others = [m for m in others if m.lane != mine.lane]
        await harness.store.admin.requests.add("discard", [(message.event_id, "") for message in [*others, mine]])
        owner = Owner(harness.store, everything.relay, [owned for owned in everything.owned if owned.lane == mine.lane])
        assert (await harness.store.writes.execute_requests(owner.epochs, limit=1)).done == 1
        assert mine.event_id not in ids(await everything.ready())
        assert set(ids(others)) <= set(ids(await everything.ready()))

    async def test_requests_are_executed_in_chunks(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(f"{n}") for n in range(5)))
        await harness.store.admin.requests.add("discard", [(f"{n}", "") for n in range(5)])
        assert (await harness.store.writes.execute_requests(owner.epochs, limit=3)).done == 3
        assert len(await owner.ready()) == 2
        assert (await harness.store.writes.execute_requests(owner.epochs, limit=3)).done == 2


@needing("listings")
class EventStatusConformance:
    async def test_an_unknown_event_is_not_found(self, harness: StoreHarness) -> None:
        assert await find_event(harness.store, "nothing") == []

    async def test_a_new_event_is_pending(self, harness: StoreHarness) -> None:
        await harness.commit(event("a", "k", destination="x"))
        [row] = await find_event(harness.store, "a")
        assert (row.event_id, row.destination, row.status) == ("a", "x", "PENDING")
        assert (row.event_type, row.key, row.attempts, row.retry_count) == ("thing.happened", "k", 0, 0)
        assert (row.last_error, row.published_at, row.locked_by) == (None, None, None)

    async def test_an_event_that_waits_for_its_retry_is_pending_and_shows_when(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        await owner.settle(LATER, *await owner.ready())
        [row] = await find_event(harness.store, "a")
        assert (row.status, row.retry_count) == ("PENDING", 1)
        assert row.next_retry_at is not None
        assert at(HOUR - 60) < row.next_retry_at < at(HOUR + 60)

    async def test_a_message_long_in_flight_is_processing_and_names_its_relay(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store, name="relay-a")
        await harness.commit(event("a", destination="x"), event("b", destination="x"))
        in_flight = [InFlightMessage(event_id="a", destination="x", seconds=3)]
        assert await harness.store.lanes.renew(owner.relay, lease=LONG, in_flight=in_flight) is not None
        [a] = await find_event(harness.store, "a")
        [b] = await find_event(harness.store, "b")
        assert (a.status, b.status, b.locked_by) == ("PROCESSING", "PENDING", None)
        assert a.locked_by is not None
        assert owner.relay in a.locked_by
        assert "relay-a" in a.locked_by

    async def test_a_message_no_longer_in_flight_is_pending_again(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        in_flight = [InFlightMessage(event_id="a", destination="", seconds=3)]
        await harness.store.lanes.renew(owner.relay, lease=LONG, in_flight=in_flight)
        await harness.store.lanes.renew(owner.relay, lease=LONG)
        [row] = await find_event(harness.store, "a")
        assert (row.status, row.locked_by) == ("PENDING", None)

    async def test_a_delivered_message_is_published_whatever_the_last_heartbeat_reported(
        self, harness: StoreHarness
    ) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        in_flight = [InFlightMessage(event_id="a", destination="", seconds=3)]
        await harness.store.lanes.renew(owner.relay, lease=LONG, in_flight=in_flight)
        await owner.settle(DELIVERED, *await owner.ready())
        [row] = await find_event(harness.store, "a")
        assert (row.status, row.locked_by) == ("PUBLISHED", None)
