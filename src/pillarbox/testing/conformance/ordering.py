"""Ordering: which message waits for which, and which ordering queues are orphaned."""

from __future__ import annotations

import pytest

from pillarbox.core.message import EarlierQuery, Held, KeyQueue, Message
from pillarbox.core.outcome import DELIVERED, Dead, Outcome, Retry
from pillarbox.testing.conformance.events import HOUR, at, event, keyed_events
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner, ids, queue_of

LATER = Retry(delay=HOUR, error="no")
AGAIN = Retry(delay=0, error="no")

HOLDING: dict[str, Outcome | Held] = {
    "a retry not yet due": LATER,
    "a retry that is due": AGAIN,
    "a deferral": Retry(delay=HOUR, error="no", counted=False),
    "a blocked one": Dead(error="no", block=True),
    "a parked one": Held.PARKED,
    "a waiting one": Held.WAITING,
}


async def wait_as(owner: Owner, kind: Outcome | Held, message: Message, to: str | None = None) -> None:
    if isinstance(kind, Held):
        await owner.hold(kind, message, to=to)
    else:
        await owner.settle(kind, message, to=to)


class KeyOrderConformance:
    @pytest.mark.parametrize("kind", HOLDING.values(), ids=HOLDING.keys())
    async def test_a_message_waits_for_an_earlier_pending_one_of_its_key(
        self, harness: StoreHarness, kind: Outcome | Held
    ) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b"), event("other", "j"))
        a, b, _ = await owner.ready()
        assert not b.must_wait
        await wait_as(owner, kind, a)
        assert {m.event_id: m.must_wait for m in await owner.ready()} == {"b": True, "other": False}
        assert await _earlier(owner, b, "") is True
        assert await _earlier(owner, a, "") is False

    async def test_a_message_does_not_wait_for_a_later_one(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b"))
        a, b = await owner.ready()
        await owner.settle(LATER, b)
        [found] = await owner.ready()
        assert (found.event_id, found.must_wait) == ("a", False)
        assert await _earlier(owner, a, "") is False

    async def test_a_message_without_key_never_waits(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"), event("b"))
        a, b = await owner.ready()
        await owner.settle(LATER, a)
        assert await owner.ready() == [b]

    async def test_an_ordering_queue_is_a_key_at_a_destination(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(
            event("a", "k", destination="x"),
            event("b", "k", destination="y"),
            event("c", "k", destination="x"),
        )
        a, *_ = await owner.ready()
        await owner.settle(LATER, a)
        assert {m.event_id: m.must_wait for m in await owner.ready()} == {"b": False, "c": True}

    async def test_a_message_without_destination_holds_its_key_for_all(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"), event("b", "k", destination="x"))
        a, b = await owner.ready()
        await owner.settle(LATER, a)
        [found] = await owner.ready()
        assert (found.event_id, found.must_wait) == ("b", True)
        assert await _earlier(owner, b, "x") is True

    async def test_a_message_without_destination_waits_for_every_earlier_one_of_its_key(
        self, harness: StoreHarness
    ) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k", destination="x"), event("b", "k"))
        a, b = await owner.ready()
        await owner.settle(LATER, a)
        [found] = await owner.ready()
        assert (found.event_id, found.must_wait) == ("b", True)
        assert await _earlier(owner, b, "") is True

    async def test_a_message_no_longer_waits_once_the_earlier_one_is_settled(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b"))
        a, b = await owner.ready()
        await owner.settle(AGAIN, a)
        await owner.settle(DELIVERED, *await owner.due())
        assert await owner.ready() == [b]
        assert await _earlier(owner, b, "") is False

    async def test_a_retry_waits_for_an_earlier_retry_that_is_due_later(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b"))
        a, b = await owner.ready()
        await owner.settle(LATER, a)
        await owner.settle(AGAIN, b)
        [found] = await owner.due()
        assert (found.event_id, found.must_wait) == ("b", True)

    async def test_each_probe_has_its_result_in_order(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k", destination="x"), event("b", "k", destination="x"))
        a, b = await owner.ready()
        await owner.settle(LATER, a)
        probes = [
            EarlierQuery(b.lane, "k", "x", b.id),
            EarlierQuery(b.lane, "k", "y", b.id),
            EarlierQuery(b.lane, "unknown", "x", b.id),
            EarlierQuery(b.lane, "k", "", b.id),
            EarlierQuery(a.lane, "k", "x", a.id),
        ]
        assert await harness.store.messages.earlier(probes) == [True, False, False, True, False]
        assert await harness.store.messages.earlier([]) == []


class KeyQueueConformance:
    async def test_a_waiting_message_is_not_fetched(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b", "c"))
        a, b, c = await owner.ready()
        await owner.settle(LATER, a)
        await owner.hold(Held.WAITING, b, c)
        assert await owner.ready() == []
        assert await owner.due() == []
        assert await owner.orphaned_queues() == []
        assert await owner.waiting(queue_of(b)) == []

    async def test_a_queue_is_fetched_in_order_once_its_first_message_is_settled(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b", "c", "d"))
        a, b, c, d = await owner.ready()
        await owner.settle(AGAIN, a)
        await owner.hold(Held.WAITING, b, d, c)
        await owner.settle(DELIVERED, *await owner.due())
        assert await owner.orphaned_queues() == [queue_of(b)]
        assert ids(await owner.waiting(queue_of(b))) == ["b", "c", "d"]
        assert ids(await owner.waiting(queue_of(b), quota=2)) == ["b", "c"]
        assert ids(await owner.waiting(queue_of(b), limit=1)) == ["b"]
        assert ids(await owner.waiting(queue_of(b), max_bytes=1)) == ["b"]
        assert ids(await owner.waiting(queue_of(b), in_flight=[b.position])) == ["c", "d"]

    async def test_a_fetched_message_no_longer_waits(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b"))
        a, b = await owner.ready()
        await owner.hold(Held.WAITING, a, b)
        assert [m.must_wait for m in await owner.waiting(queue_of(a))] == [False, False]

    async def test_a_queue_is_fetched_up_to_the_next_message_that_holds_it_back(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b", "c"))
        a, b, c = await owner.ready()
        await owner.hold(Held.WAITING, a, c)
        await owner.settle(LATER, b)
        assert await owner.orphaned_queues() == [queue_of(a)]
        assert ids(await owner.waiting(queue_of(a))) == ["a"]
        await owner.settle(DELIVERED, *await owner.waiting(queue_of(a)))
        assert await owner.orphaned_queues() == []
        assert await owner.waiting(queue_of(a)) == []

    async def test_a_waiting_message_can_be_delivered_in_its_position(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b", "c"))
        messages = await owner.ready()
        await owner.hold(Held.WAITING, *messages)
        for expected in ("a", "b", "c"):
            [found] = await owner.waiting(queue_of(messages[0]), limit=1)
            assert found.event_id == expected
            await owner.settle(DELIVERED, found)
        assert await owner.orphaned_queues() == []

    async def test_each_destination_has_its_own_queue(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(
            event("a", "k", destination="x"),
            event("b", "k", destination="x"),
            event("c", "k", destination="y"),
        )
        a, b, c = await owner.ready()
        await owner.settle(LATER, a)
        await owner.hold(Held.WAITING, b, c)
        assert await owner.orphaned_queues() == [queue_of(c)]
        assert ids(await owner.waiting(queue_of(b), queue_of(c))) == ["c"]

    @pytest.mark.parametrize("kind", HOLDING.values(), ids=HOLDING.keys())
    async def test_a_message_without_destination_holds_back_every_queue_of_its_key(
        self, harness: StoreHarness, kind: Outcome | Held
    ) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"), event("b", "k", destination="x"))
        a, b = await owner.ready()
        await wait_as(owner, kind, a)
        await owner.hold(Held.WAITING, b)
        assert await owner.waiting(queue_of(b)) == []
        assert queue_of(b) not in await owner.orphaned_queues()

    @pytest.mark.parametrize("kind", HOLDING.values(), ids=HOLDING.keys())
    async def test_a_message_without_destination_waits_for_every_queue_of_its_key(
        self, harness: StoreHarness, kind: Outcome | Held
    ) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k", destination="x"), event("b", "k"))
        a, b = await owner.ready()
        await wait_as(owner, kind, a)
        await owner.hold(Held.WAITING, b)
        assert await owner.waiting(queue_of(b)) == []
        assert queue_of(b) not in await owner.orphaned_queues()

    async def test_a_delayed_event_holds_its_queue_back_only_when_it_is_due(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("future", "k", available_at=at(HOUR)), event("a", "k"))
        await harness.commit(event("due", "j", available_at=at(-1)), event("b", "j"))
        a, b = await owner.ready()
        await owner.hold(Held.WAITING, a, b)
        assert await owner.orphaned_queues() == [queue_of(a)]
        assert ids(await owner.waiting(queue_of(a), queue_of(b))) == ["a"]

    async def test_orphaned_queues_are_found_in_chunks(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(f"{n}", f"key {n}", destination=f"d{n % 3}") for n in range(12)))
        messages = await owner.ready()
        await owner.hold(Held.WAITING, *messages)
        assert len((await harness.store.messages.orphaned_queues(owner.lanes, limit=5)).queues) == 5
        assert await owner.orphaned_queues(limit=5) == sorted(queue_of(m) for m in messages)

    async def test_an_empty_chunk_returns_where_the_next_continues(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        for n in range(6):
            await harness.commit(*keyed_events(f"key {n}", f"first {n}", f"next {n}"))
        messages = await owner.ready()
        firsts, nexts = messages[::2], messages[1::2]
        await owner.settle(LATER, *firsts[:5])
        await owner.settle(DELIVERED, *firsts[5:])
        await owner.hold(Held.WAITING, *nexts)
        found: list[KeyQueue] = []
        batch = await harness.store.messages.orphaned_queues(owner.lanes, limit=1)
        while batch.after is not None:
            found += batch.queues
            batch = await harness.store.messages.orphaned_queues(owner.lanes, limit=1, after=batch.after)
        assert found + batch.queues == [queue_of(nexts[5])]

    async def test_several_queues_are_fetched_at_once_within_their_quotas(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b", "c"), *keyed_events("j", "d", "e", "f"))
        messages = await owner.ready()
        await owner.hold(Held.WAITING, *messages)
        queues = await owner.orphaned_queues()
        found = await owner.waiting(*queues, quota=2)
        assert sorted(ids(found)) == ["a", "b", "d", "e"]
        assert ids([m for m in found if m.key == "k"]) == ["a", "b"]

    async def test_an_orphaned_queue_is_found_after_a_takeover(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b"))
        a, b = await owner.ready()
        await owner.settle(AGAIN, a)
        await owner.hold(Held.WAITING, b)
        await owner.settle(DELIVERED, *await owner.due())
        successor = await owner.taken_over(await harness.second_store())
        assert await successor.orphaned_queues() == [queue_of(b)]
        assert ids(await successor.waiting(queue_of(b))) == ["b"]


async def _earlier(owner: Owner, message: Message, destination: str) -> bool:
    assert message.key is not None
    [answer] = await owner.store.messages.earlier([EarlierQuery(message.lane, message.key, destination, message.id)])
    return answer
