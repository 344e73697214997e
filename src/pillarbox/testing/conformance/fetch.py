"""Fetch: returns ready messages in sequence, within its bounds, without messages in flight."""

from __future__ import annotations

from pillarbox.core.message import Message
from pillarbox.core.outcome import Retry
from pillarbox.testing.conformance.capability import needs
from pillarbox.testing.conformance.events import at, event, keyed_events
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner, ids


class FetchConformance:
    async def test_an_empty_store_returns_nothing(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        assert await owner.ready() == []
        assert await owner.due() == []
        assert await owner.parked("orders") == []
        assert await owner.waiting() == []
        assert await owner.orphaned_queues() == []

    async def test_ready_messages_are_fetched_in_sequence(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        names = [f"e{n}" for n in range(30)]
        for n, name in enumerate(names):
            await harness.commit(event(name, f"key {n % 7}"))
        messages = await owner.ready()
        assert ids(messages) == names
        assert [m.id for m in messages] == sorted(m.id for m in messages)

    async def test_a_fetch_returns_only_the_named_lanes(self, harness: StoreHarness) -> None:
        needs(harness, "several_lanes")
        await harness.commit(*(event(f"e{n}") for n in range(50)))
        owner = await Owner.of(harness.store)
        everything = await owner.ready()
        owner.owned = owner.owned[::2]
        assert await owner.ready() == [m for m in everything if m.lane in owner.epochs]
        owner.owned = []
        assert await owner.ready() == []

    async def test_a_fetch_changes_nothing(self, harness: StoreHarness) -> None:
        await harness.commit(*keyed_events("k", "a", "b"), event("c"))
        owner = await Owner.of(harness.store)
        assert await owner.ready() == await owner.ready()

    async def test_a_fetch_returns_at_most_its_limit_and_the_first_of_each_queue(self, harness: StoreHarness) -> None:
        await harness.commit(*(event(f"{n}", f"key {n % 7}") for n in range(70)))
        owner = await Owner.of(harness.store)
        messages = await owner.ready(limit=20)
        assert len(messages) == 20
        _assert_a_prefix_of_each_key(messages, keys=7)

    async def test_a_quota_confines_a_hot_key_to_its_lane(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(f"{n}", "hot") for n in range(20)))
        assert ids(await owner.ready(quota=5)) == ["0", "1", "2", "3", "4"]
        await harness.commit(*(event(f"cold {n}") for n in range(20)))
        messages = await owner.ready(quota=5)
        per_lane = [m.lane for m in messages]
        assert max(per_lane.count(lane) for lane in per_lane) == 5

    async def test_a_fetch_is_bounded_by_bytes(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(f"{n}", "k", payload=bytes(1000)) for n in range(10)))
        messages = await owner.ready(max_bytes=3500)
        assert ids(messages) == ["0", "1", "2"]

    async def test_one_message_is_always_fetched_however_large(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("large", "k", payload=bytes(5000)), event("small", "k", payload=b"x"))
        assert ids(await owner.ready(max_bytes=100)) == ["large"]
        assert ids(await owner.ready(max_bytes=1)) == ["large"]

    async def test_headers_count_as_bytes(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        events = (event(f"{n}", "k", payload=b"x", headers={"h": "é" * 500}) for n in range(10))
        await harness.commit(*events)
        fetched = await owner.ready(max_bytes=3500)
        assert ids(fetched) == ["0", "1", "2"]
        assert all(1000 < message.size < 1100 for message in fetched)

    async def test_a_fetch_reports_what_did_not_fit(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(f"{n}", "k", payload=bytes(1000)) for n in range(4)))
        whole = await owner.ready()
        assert (len(whole), whole.left_out) == (4, None)
        part = await owner.ready(max_bytes=2500)
        assert part.left_out is not None
        assert (ids(part), part.left_out.position, part.left_out.size) == (["0", "1"], whole[2].position, 2)
        assert (await owner.ready(max_bytes=2500, limit=2)).left_out is None
        exactly = await owner.ready(max_bytes=whole[0].size + whole[1].size)
        assert exactly.left_out is not None
        assert (ids(exactly), exactly.left_out.position) == (["0", "1"], whole[2].position)
        alone = await owner.ready(max_bytes=1)
        assert alone.left_out is not None
        assert (ids(alone), alone.left_out.position) == (["0"], whole[1].position)

    async def test_a_fetch_beside_others_returns_nothing_larger_than_its_bound(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("large", "k", payload=bytes(5000)), event("small", "k", payload=b"x"))
        await harness.commit(event("due", "d", payload=bytes(5000), available_at=at(-60)))
        nothing, due = await owner.ready(max_bytes=4000, alone=False), await owner.due(max_bytes=4000, alone=False)
        assert (ids(nothing), ids(due)) == ([], [])
        assert nothing.left_out is not None
        assert nothing.left_out.event_id == "large"
        assert due.left_out is not None
        assert due.left_out.event_id == "due"
        assert ids(await owner.ready(max_bytes=6000, alone=False)) == ["large", "small"]

    async def test_a_large_message_is_not_overtaken_by_a_small_one_of_its_key(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        sizes = [10, 900, 10, 10, 900, 10]
        await harness.commit(*(event(f"{n}", f"key {n % 2}", payload=bytes(size)) for n, size in enumerate(sizes)))
        for most in range(10, 2000, 90):
            _assert_a_prefix_of_each_key(await owner.ready(max_bytes=most), keys=2)

    async def test_due_messages_are_bounded_too(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        events = [event(f"{n}", "k", payload=bytes(1000), available_at=at(n - 60)) for n in range(10)]
        await harness.commit(*events)
        assert ids(await owner.due(limit=4)) == ["0", "1", "2", "3"]
        assert ids(await owner.due(quota=2)) == ["0", "1"]
        assert ids(await owner.due(max_bytes=3500)) == ["0", "1", "2"]
        assert ids(await owner.due(max_bytes=1)) == ["0"]

    async def test_the_message_that_is_due_longest_is_fetched_first(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("later", available_at=at(-10)), event("first", available_at=at(-20)))
        assert ids(await owner.due()) == ["first", "later"]

    async def test_messages_in_flight_are_excluded(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b", "c"))
        a, b, c = await owner.ready()
        assert await owner.ready(in_flight=[a.position, c.position]) == [b]
        assert await owner.ready(in_flight=[a.position], limit=1) == [b]
        assert await owner.ready(in_flight={a.position, b.position, c.position}, limit=1) == []

    async def test_messages_in_flight_are_identified_by_sequence_and_destination(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        [whole] = await owner.ready()
        await owner.split(whole, "x", "y")
        x, y = sorted(await owner.ready(), key=lambda m: m.destination)
        assert (x.id, x.destination, y.id, y.destination) == (whole.id, "x", whole.id, "y")
        assert await owner.ready(in_flight=[x.position]) == [y]
        assert await owner.ready(in_flight=[whole.position], quota=1) != []

    async def test_messages_in_flight_are_excluded_from_due_ones(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"), event("b"))
        await owner.settle(Retry(delay=0, error="x"), *await owner.ready())
        a, b = sorted(await owner.due(), key=lambda m: m.event_id)
        assert await owner.due(in_flight=[a.position]) == [b]

    async def test_many_messages_in_flight_are_accepted(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(f"{n:04}", f"key {n % 20}") for n in range(600)))
        first = await owner.ready(limit=500)
        rest = await owner.ready(in_flight=[m.position for m in first])
        assert sorted(ids(first) + ids(rest)) == [f"{n:04}" for n in range(600)]

    async def test_a_message_that_was_not_settled_is_fetched_again_unchanged(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        [message] = await owner.ready()
        assert await owner.ready() == [message]


def _assert_a_prefix_of_each_key(messages: list[Message], *, keys: int) -> None:
    """Check that no key has a gap; ids are numbers assigned to the keys in turn."""
    for key in range(keys):
        numbers = [int(m.event_id) for m in messages if m.key == f"key {key}"]
        assert numbers == [key + keys * n for n in range(len(numbers))]
