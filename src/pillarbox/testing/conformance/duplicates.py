"""Duplicates: a second pending copy of an event is dropped, or dead-lettered if its payload differs; never an error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from pillarbox.core.lane import Settled
from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.testing.conformance.events import HOUR, event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.conformance.listings import dead_letters, find_event

LATER = Retry(delay=HOUR, error="no")

Meeting = Callable[[Owner, Message], Awaitable[Settled]]

MEETINGS: dict[str, Meeting] = {
    "retry": lambda owner, m: owner.settle(Retry(delay=0, error="no"), m, to="orders"),
    "blocked": lambda owner, m: owner.settle(Dead(error="no", block=True), m, to="orders"),
    "waiting": lambda owner, m: owner.hold(Held.WAITING, m, to="orders"),
    "parked": lambda owner, m: owner.hold(Held.PARKED, m, to="orders"),
    "split": lambda owner, m: owner.split(m, "orders"),
}


async def _waiting_twice(harness: StoreHarness, *, second: bytes) -> tuple[Owner, Message]:
    """Record `a` for `orders` and a second time without destination."""
    owner = await Owner.of(harness.store)
    await harness.commit(event("a", "k", payload=b"first"))
    await owner.settle(LATER, *await owner.ready(), to="orders")
    await harness.commit(event("a", "k", payload=second))
    [repeat] = await owner.ready()
    return owner, repeat


class DuplicateConformance:
    @pytest.mark.parametrize("meet", MEETINGS.values(), ids=MEETINGS.keys())
    async def test_an_identical_duplicate_is_dropped(self, harness: StoreHarness, meet: Meeting) -> None:
        owner, repeat = await _waiting_twice(harness, second=b"first")
        [first] = [row for row in await find_event(harness.store, "a") if row.destination == "orders"]
        settled = await meet(owner, repeat)
        assert settled.duplicates == 1
        assert await find_event(harness.store, "a") == [first]
        assert await dead_letters(harness.store) == []

    @pytest.mark.parametrize("meet", MEETINGS.values(), ids=MEETINGS.keys())
    async def test_a_duplicate_with_another_payload_is_a_dead_letter(
        self, harness: StoreHarness, meet: Meeting
    ) -> None:
        owner, repeat = await _waiting_twice(harness, second=b"second")
        settled = await meet(owner, repeat)
        assert settled.duplicates == 0
        [dead] = await dead_letters(harness.store)
        assert (dead.event_id, dead.destination, bytes(dead.payload)) == ("a", "orders", b"second")
        clash = f"event id {dead.event_id} is already pending for {dead.destination} with another payload"
        assert dead.error == f"{clash}: give each event its own id"
        statuses = [(row.status, row.destination) for row in await find_event(harness.store, "a")]
        assert sorted(statuses) == [("FAILED", "orders"), ("PENDING", "orders")]

    async def test_a_split_drops_only_the_copy_that_is_already_pending(self, harness: StoreHarness) -> None:
        owner, repeat = await _waiting_twice(harness, second=b"first")
        settled = await owner.split(repeat, "orders", "mailer")
        assert settled.duplicates == 1
        rows = await find_event(harness.store, "a")
        assert sorted((row.destination, row.retry_count) for row in rows) == [("mailer", 0), ("orders", 1)]

    async def test_a_duplicate_may_be_delivered_while_the_first_is_pending(self, harness: StoreHarness) -> None:
        owner, repeat = await _waiting_twice(harness, second=b"first")
        assert (await owner.settle(DELIVERED, repeat, to="orders")).count == 1
        statuses = sorted(row.status for row in await find_event(harness.store, "a"))
        assert statuses == ["PENDING", "PUBLISHED"]

    async def test_two_duplicates_in_one_write_leave_one(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k", destination="old"), event("a", "k"))
        messages = await owner.ready()
        assert len(messages) == 2
        settled = await owner.settle(LATER, *messages, to="new")
        assert settled.duplicates == 1
        [row] = await find_event(harness.store, "a")
        assert (row.destination, row.status) == ("new", "PENDING")

    async def test_a_message_is_not_a_duplicate_of_itself(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k", destination="x"))
        [message] = await owner.ready()
        assert (await owner.settle(LATER, message)).duplicates == 0
        await harness.commit(event("b", "k", destination="x"))
        [b] = await owner.ready()
        assert (await owner.split(b, "x", "y")).duplicates == 0
        assert sorted(row.destination for row in await find_event(harness.store, "b")) == ["x", "y"]
