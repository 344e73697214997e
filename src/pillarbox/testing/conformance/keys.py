"""Keys: the blocked ones and the busiest ones."""

from __future__ import annotations

import pytest

from pillarbox.admin.keys import QueueView
from pillarbox.admin.listing import Position
from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import DELIVERED, Dead, Outcome, Retry
from pillarbox.testing.conformance.events import event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.conformance.listings import dead_letters


class KeysConformance:
    async def test_a_blocked_key_shows_its_first_event_and_the_number_of_waiting_ones(
        self, harness: StoreHarness
    ) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("first", key="k"), event("second", key="k"), event("other", key="free"))
        first, second, _ = await owner.ready()
        await owner.settle(Dead(error="refused", block=True), first, to="orders")
        await owner.hold(Held.WAITING, second)
        [blocked] = await harness.store.admin.keys.blocked()
        assert (blocked.key, blocked.destination, blocked.event_id, blocked.error, blocked.waiting) == (
            "k",
            "orders",
            "first",
            "refused",
            1,
        )

    async def test_a_later_event_without_a_route_counts_as_waiting(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("first", key="k"), event("unrouted", key="k"))
        first, unrouted = await owner.ready()
        await owner.settle(Dead(error="refused", block=True), first, to="orders")
        await owner.settle(Retry(delay=600, error="no route"), unrouted)
        [blocked] = await harness.store.admin.keys.blocked()
        assert (blocked.event_id, blocked.waiting) == ("first", 1)

    async def test_an_event_that_waits_for_its_retry_blocks_its_key(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        keyed = (event(f"{name} {number}", key=name) for name in ("first", "later", "alone") for number in (1, 2, 3))
        await harness.commit(*keyed)
        messages = {message.event_id: message for message in await owner.ready()}
        for name in ("first 1", "later 1", "alone 1"):
            await owner.settle(Retry(delay=600, error="refused"), messages[name], to="orders")
        await owner.hold(Held.WAITING, messages["first 2"], messages["first 3"], messages["later 2"], to="orders")
        first, later = await harness.store.admin.keys.blocked()
        assert (first.key, first.destination, first.event_id, first.error, first.waiting) == (
            "first",
            "orders",
            "first 1",
            "refused",
            2,
        )
        assert (later.key, later.waiting) == ("later", 1)
        assert first.next_retry_at is not None
        assert first.next_retry_at > first.since

    async def test_blocked_keys_are_listed_before_keys_that_wait_for_a_retry(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(f"{name} {number}", key=name) for name in ("a", "b") for number in (1, 2)))
        waiting, second, blocked, _ = await owner.ready()
        await owner.settle(Retry(delay=600, error="refused"), waiting, to="orders")
        await owner.hold(Held.WAITING, second, to="orders")
        await owner.settle(Dead(error="refused", block=True), blocked, to="orders")
        assert [(one.key, one.next_retry_at is None) for one in await harness.store.admin.keys.blocked()] == [
            ("b", True),
            ("a", False),
        ]
        assert [one.key for one in await harness.store.admin.keys.blocked(limit=1)] == ["b"]

    async def test_an_event_that_is_due_does_not_block_its_key(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("first", key="k"), event("second", key="k"))
        first, second = await owner.ready()
        await owner.settle(Retry(delay=0, error="refused"), first, to="orders")
        await owner.hold(Held.WAITING, second, to="orders")
        assert await harness.store.admin.keys.blocked() == []

    async def test_the_limit_is_respected(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(f"e{n}", key=f"k{n}") for n in range(3)))
        await owner.settle(Dead(error="refused", block=True), *await owner.ready())
        assert len(await harness.store.admin.keys.blocked(limit=2)) == 2

    async def test_the_busiest_keys_are_listed_first(self, harness: StoreHarness) -> None:
        await harness.commit(
            *(event(f"a{n}", key="a") for n in range(3)), *(event(f"b{n}", key="b") for n in range(2)), event("none")
        )
        assert await harness.store.admin.keys.busiest() == [("a", 3), ("b", 2)]
        assert await harness.store.admin.keys.busiest(limit=1) == [("a", 3)]

    @pytest.mark.parametrize(
        ("outcome", "held"), [(Dead(error="no", block=True), Held.BLOCKED), (Retry(delay=600, error="no"), None)]
    )
    async def test_a_waiting_event_shows_what_it_waits_for(
        self, harness: StoreHarness, outcome: Outcome, held: Held | None
    ) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(f"e{n}", key="k") for n in range(9)), event("other", key="free"))
        first, *waiting = [message for message in await owner.ready() if message.key == "k"]
        await owner.settle(outcome, first, to="orders")
        # The relay has marked some as waiting, and has not fetched the last ones.
        await owner.hold(Held.WAITING, *waiting[:5], to="orders")
        queue = await queue_at(harness, waiting[1], "orders")
        assert queue.first is not None
        assert (queue.first.event_id, queue.first.destination, queue.first.held) == ("e0", "orders", held)
        assert (queue.first.next_retry_at is None) == (held is Held.BLOCKED)
        assert [one.event_id for one in queue.later] == ["e3", "e4", "e5", "e6", "e7"]
        assert (await queue_at(harness, waiting[6])).first == queue.first
        own = await queue_at(harness, first, "orders")
        assert (own.first, [one.event_id for one in own.later][:2]) == (None, ["e1", "e2"])

    async def test_a_parked_first_event_is_shown_as_parked(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("first", key="k"), event("second", key="k"))
        first, second = await owner.ready()
        await owner.hold(Held.PARKED, first, to="orders")
        found = (await queue_at(harness, second)).first
        assert found is not None
        assert (found.event_id, found.held, found.next_retry_at) == ("first", Held.PARKED, None)
        assert (await queue_at(harness, second, "mail")).first is None

    async def test_delivered_and_dead_events_keep_their_position_in_the_key(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(f"e{n}", key="k") for n in range(4)), event("other", key="free"))
        first, second, third, _ = [message for message in await owner.ready() if message.key == "k"]
        await owner.settle(DELIVERED, first, second, to="orders")
        await owner.settle(Dead(error="no"), third, to="mail")
        queue = await queue_at(harness, first, "orders")
        assert queue.first is None
        assert [(one.event_id, one.status) for one in queue.later] == [
            ("e1", "PUBLISHED"),
            ("e2", "FAILED"),
            ("e3", "PENDING"),
        ]
        assert (await queue_at(harness, third, "mail")).later == queue.later[2:]

    async def test_an_operator_can_dead_letter_the_first_event_of_a_key(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("first", key="k"))
        await owner.settle(Dead(error="refused", block=True), *await owner.ready(), to="orders")
        await harness.store.admin.requests.add("dead_letter", [("first", "orders")], by="ann")
        assert (await harness.store.writes.execute_requests(owner.epochs)).done == 1
        [dead_letter] = await dead_letters(harness.store)
        assert (dead_letter.event_id, dead_letter.destination, dead_letter.error) == ("first", "orders", "refused")
        assert await harness.store.admin.keys.blocked() == []


async def queue_at(harness: StoreHarness, message: Message, destination: str = "") -> QueueView:
    """Return what surrounds a message in its ordering queue."""
    return await harness.store.admin.keys.queue("k", Position(message.recorded_at, message.id, destination))
