"""Parked messages: what waits for an unavailable destination does not delay other messages."""

from __future__ import annotations

from pillarbox.admin.listing import EventFilter
from pillarbox.core.message import Held
from pillarbox.core.outcome import DELIVERED
from pillarbox.testing.conformance.events import event, keyed_events
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import LONG, Owner, ids, queue_of
from pillarbox.testing.conformance.listings import find_event


async def shown(harness: StoreHarness, event_id: str) -> tuple[str | None, bool]:
    """Return the error of a pending event and whether its next attempt is known; every list must agree."""
    [row] = await find_event(harness.store, event_id)
    [detail] = (await harness.store.admin.events.show(event_id)).events
    page = await harness.store.admin.events.list(EventFilter(), limit=10)
    [listed] = [one for one in page.events if one.event_id == event_id]
    values = {(one.last_error, one.next_retry_at is not None) for one in (row, detail, listed)}
    assert len(values) == 1, values
    return values.pop()


class ParkedConformance:
    async def test_a_parked_message_is_not_fetched(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", destination="x"), event("b", destination="y"))
        a, b = await owner.ready()
        assert (await owner.hold(Held.PARKED, a)).count == 1
        assert await owner.ready() == [b]
        assert await owner.due() == []
        assert await owner.orphaned_queues() == []

    async def test_parked_messages_are_found_by_destination_in_sequence(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(
            *(event(f"{n:02}", destination="x" if n % 2 else "y", payload=bytes(100)) for n in range(20))
        )
        await owner.hold(Held.PARKED, *await owner.ready())
        odd = [f"{n:02}" for n in range(1, 20, 2)]
        assert ids(await owner.parked("x")) == odd
        assert len(await owner.parked("x", "y")) == 20
        assert await owner.parked("z") == []
        assert await owner.parked() == []
        assert len(await owner.parked("x", limit=3)) == 3
        assert len(await owner.parked("x", max_bytes=250)) == 2
        first, *rest = await owner.parked("x")
        assert await owner.parked("x", in_flight=[first.position]) == rest

    async def test_the_destinations_of_parked_messages_are_listed(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(
            *(event(f"{n}", f"key {n}", destination=f"destination {n % 3}") for n in range(30)),
            event("ready", destination="another"),
        )
        await owner.hold(Held.PARKED, *[m for m in await owner.ready() if m.event_id != "ready"])
        assert sorted(await harness.store.messages.parked_destinations(owner.lanes)) == [
            "destination 0",
            "destination 1",
            "destination 2",
        ]
        assert await harness.store.messages.parked_destinations([]) == []

    async def test_parking_is_not_an_attempt_and_shows_as_pending(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        await owner.hold(Held.PARKED, *await owner.ready(), to="x")
        [message] = await owner.parked("x")
        assert (message.attempts, message.deferrals, message.destination, message.held) == (0, 0, "x", "parked")
        assert message.must_wait is False
        [row] = await find_event(harness.store, "a")
        assert (row.status, row.retry_count, row.destination) == ("PENDING", 0, "x")

    async def test_a_parked_message_shows_the_error_and_the_next_attempt_of_its_destination(
        self, harness: StoreHarness
    ) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("parked", destination="x"))
        await owner.hold(Held.PARKED, *await owner.ready())
        await harness.store.destinations.report("x", error="connection refused", next_attempt=60)
        assert await shown(harness, "parked") == ("connection refused", True)
        await harness.store.destinations.report("x", error=None, next_attempt=None)
        assert await shown(harness, "parked") == (None, False)

    async def test_an_unrouted_message_waits_for_the_first_destination_during_an_outage(
        self, harness: StoreHarness
    ) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("unrouted"), event("elsewhere", destination="y"))
        await harness.store.destinations.report("x", error="connection refused", next_attempt=60)
        for breakers, expected in (
            ({}, (None, False)),
            ({"x": "open"}, ("connection refused", True)),
            ({"x": "half-open"}, ("connection refused", True)),
            ({"x": "open", "y": "closed"}, (None, False)),
        ):
            await harness.store.lanes.renew(owner.relay, lease=LONG, breakers=breakers)
            assert await shown(harness, "unrouted") == expected
            assert await shown(harness, "elsewhere") == (None, False)

    async def test_a_message_without_route_is_parked_without_a_destination(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        await owner.hold(Held.PARKED, *await owner.ready())
        assert ids(await owner.parked("")) == ["a"]
        assert await owner.parked("x") == []

    async def test_a_parked_key_continues_once_its_first_message_is_delivered(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b", "c", destination="x"))
        a, b, c = await owner.ready()
        await owner.hold(Held.PARKED, a)
        await owner.hold(Held.WAITING, b, c)
        assert ids(await owner.parked("x")) == ["a"]
        assert await owner.waiting(queue_of(b)) == []
        await owner.settle(DELIVERED, *await owner.parked("x"))
        assert ids(await owner.waiting(queue_of(b))) == ["b", "c"]

    async def test_parked_messages_survive_a_takeover(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", destination="x"))
        await owner.hold(Held.PARKED, *await owner.ready())
        successor = await owner.taken_over(await harness.second_store())
        assert ids(await successor.parked("x")) == ["a"]

    async def test_the_reason_of_a_held_message_may_change(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k", destination="x"))
        [message] = await owner.ready()
        await owner.hold(Held.WAITING, message)
        [message] = await owner.waiting(queue_of(message))
        await owner.hold(Held.PARKED, message)
        assert await owner.waiting(queue_of(message)) == []
        assert ids(await owner.parked("x")) == ["a"]
