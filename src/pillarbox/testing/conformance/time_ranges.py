"""Time ranges: a fetch for a time range returns what was recorded then, and keeps the order with messages outside."""

from __future__ import annotations

from datetime import datetime
from itertools import count

from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.testing.conformance.events import HOUR, at, event, keyed_events
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner, ids, queue_of
from pillarbox.testing.waiting import eventually

_numbers = count(1)


class TimeRangeConformance:
    async def test_only_messages_recorded_in_the_range_are_fetched(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        first = await _moment(harness, owner)
        await harness.commit(event("b", "k"), event("c"))
        second = await _moment(harness, owner)
        await harness.commit(event("d"))
        assert ids(await owner.ready()) == ["a", "b", "c", "d"]
        assert ids(await owner.ready(recorded_after=first)) == ["b", "c", "d"]
        assert ids(await owner.ready(recorded_before=second)) == ["a", "b", "c"]
        assert ids(await owner.ready(recorded_after=first, recorded_before=second)) == ["b", "c"]
        assert await owner.ready(recorded_after=at(HOUR)) == []

    async def test_the_range_includes_its_start_and_excludes_its_end(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        [a] = await owner.ready()
        assert await owner.ready(recorded_after=a.recorded_at) == [a]
        assert await owner.ready(recorded_before=a.recorded_at) == []

    async def test_a_key_with_an_earlier_message_outside_the_range_is_skipped(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        then = await _moment(harness, owner)
        await harness.commit(*keyed_events("k", "b", "c"), event("d", "other"), event("e"))
        assert ids(await owner.ready(recorded_after=then)) == ["d", "e"]

    async def test_a_later_message_outside_the_range_holds_nothing_back(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b"))
        then = await _moment(harness, owner)
        await harness.commit(event("c", "k"))
        assert ids(await owner.ready(recorded_before=then)) == ["a", "b"]

    async def test_a_key_is_fetched_once_the_earlier_message_is_delivered(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        [a] = await owner.ready()
        then = await _moment(harness, owner)
        await harness.commit(event("b", "k"))
        assert await owner.ready(recorded_after=then) == []
        await owner.settle(DELIVERED, a)
        assert ids(await owner.ready(recorded_after=then)) == ["b"]

    async def test_an_earlier_message_outside_the_range_holds_its_key_in_every_state(
        self, harness: StoreHarness
    ) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("delayed", "delayed", available_at=at(HOUR)))
        await harness.commit(*(event(name, name) for name in ("retried", "blocked", "parked", "waiting")))
        retried, blocked, parked, waiting = await owner.ready()
        await owner.settle(Retry(delay=HOUR, error="no"), retried)
        await owner.settle(Dead(error="no", block=True), blocked)
        await owner.hold(Held.PARKED, parked)
        await owner.hold(Held.WAITING, waiting)
        then = await _moment(harness, owner)
        for key in ("delayed", "retried", "blocked", "parked", "waiting", "free"):
            await harness.commit(event(f"after {key}", key))
        assert ids(await owner.ready(recorded_after=then)) == ["after free"]

    async def test_queues_of_a_key_are_independent_except_for_unrouted_messages(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "apart", destination="x"), event("b", "together"))
        then = await _moment(harness, owner)
        await harness.commit(
            event("x", "apart", destination="x"),
            event("y", "apart", destination="y"),
            event("unrouted", "apart"),
            event("z", "together", destination="z"),
        )
        assert ids(await owner.ready(recorded_after=then)) == ["y"]

    async def test_messages_outside_the_range_do_not_count_towards_the_limit(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(f"old {n}") for n in range(20)), event("first", "hot"))
        then = await _moment(harness, owner)
        await harness.commit(*(event(f"{n}", "hot") for n in range(20)), event("a", "hot", destination="x"), event("b"))
        assert ids(await owner.ready(recorded_after=then, limit=1, quota=1, max_bytes=1)) == ["b"]

    async def test_messages_in_flight_are_excluded_from_a_range(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        then = await _moment(harness, owner)
        await harness.commit(*keyed_events("k", "a", "b"))
        a, b = await owner.ready()
        assert await owner.ready(recorded_after=then, in_flight=[a.position]) == [b]

    async def test_due_messages_are_fetched_by_range(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k", available_at=at(-10)), event("b", available_at=at(-10)))
        then = await _moment(harness, owner)
        await harness.commit(event("c", "k", available_at=at(-20)), event("d", available_at=at(-20)))
        assert sorted(ids(await owner.due(recorded_before=then))) == ["a", "b"]
        assert ids(await owner.due(recorded_after=then)) == ["d"]

    async def test_parked_messages_are_fetched_by_range(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k", destination="x"), event("b", destination="x"))
        then = await _moment(harness, owner)
        await harness.commit(event("c", "other", destination="x"), event("d", "k", destination="y"))
        await harness.commit(event("e", "k", destination="x"))
        await owner.hold(Held.PARKED, *await owner.ready())
        assert ids(await owner.parked("x", "y", recorded_before=then)) == ["a", "b"]
        assert ids(await owner.parked("x", "y", recorded_after=then)) == ["c", "d"]
        assert len(await owner.parked("x", "y", recorded_after=then, limit=1)) == 1

    async def test_a_queue_is_fetched_up_to_the_first_message_outside_the_range(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b", destination="x"))
        then = await _moment(harness, owner)
        await harness.commit(*keyed_events("k", "c", "d", destination="x"))
        a, *waiting = await owner.ready()
        await owner.hold(Held.WAITING, *waiting)
        await owner.settle(DELIVERED, a)
        assert ids(await owner.waiting(queue_of(a))) == ["b", "c", "d"]
        assert ids(await owner.waiting(queue_of(a), recorded_before=then)) == ["b"]
        assert await owner.waiting(queue_of(a), recorded_after=then) == []

    async def test_a_message_that_must_wait_is_reported_in_a_range(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        then = await _moment(harness, owner)
        await harness.commit(*keyed_events("k", "a", "b"))
        a, _ = await owner.ready()
        await owner.settle(Retry(delay=HOUR, error="no"), a)
        assert [(m.event_id, m.must_wait) for m in await owner.ready(recorded_after=then)] == [("b", True)]


async def _moment(harness: StoreHarness, owner: Owner) -> datetime:
    """Return a time of the store's clock, later than everything recorded and not later than what will be recorded."""
    ticks: list[Message] = []

    async def ticked() -> bool:
        name = f"tick {next(_numbers)}"
        await harness.commit(event(name))
        ticks.extend(m for m in await owner.ready() if m.event_id == name)
        return ticks[0].recorded_at < ticks[-1].recorded_at

    await eventually(ticked, pause=0.001)
    await owner.settle(DELIVERED, *ticks)
    return ticks[-1].recorded_at
