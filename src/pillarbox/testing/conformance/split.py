"""Split: an event with several destinations becomes one message per destination, with the same sequence."""

from __future__ import annotations

from pillarbox.core.message import Held
from pillarbox.core.outcome import DELIVERED, Dead, Retry, Split
from pillarbox.testing.conformance.events import HOUR, event, keyed_events
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner, queue_of
from pillarbox.testing.conformance.listings import find_event


class SplitConformance:
    async def test_the_copies_keep_the_sequence_and_all_fields(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k", headers={"h": "1"}, payload=b"\x00\xff"))
        [whole] = await owner.ready()
        settled = await owner.split(whole, "x", "y", "z")
        assert settled.duplicates == 0
        copies = sorted(await owner.ready(), key=lambda m: m.destination)
        assert copies == [whole._replace(destination=name) for name in ("x", "y", "z")]

    async def test_the_unsplit_message_is_deleted(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        [whole] = await owner.ready()
        await owner.split(whole, "x", "y")
        assert sorted(row.destination for row in await find_event(harness.store, "a")) == ["x", "y"]
        assert (await owner.settle(DELIVERED, whole)).count == 0

    async def test_each_copy_has_its_own_outcome(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        [whole] = await owner.ready()
        await owner.split(whole, "x", "y", "z")
        x, y, z = sorted(await owner.ready(), key=lambda m: m.destination)
        await owner.settle(DELIVERED, x)
        await owner.settle(Retry(delay=HOUR, error="no"), y)
        await owner.settle(Dead(error="never"), z)
        found = {row.destination: (row.status, row.attempts) for row in await find_event(harness.store, "a")}
        assert found == {"x": ("PUBLISHED", 0), "y": ("PENDING", 1), "z": ("FAILED", 1)}

    async def test_a_waiting_copy_holds_only_its_own_queue_back(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b"))
        a, b = await owner.ready()
        await harness.store.writes.split(owner.epochs, [Split(a, ("x", "y")), Split(b, ("x", "y"))])
        messages = {(m.event_id, m.destination): m for m in await owner.ready()}
        assert len(messages) == 4
        await owner.settle(Retry(delay=HOUR, error="no"), messages["a", "x"])
        waiting = {m.identity: m.must_wait for m in await owner.ready()}
        assert waiting == {("a", "y"): False, ("b", "x"): True, ("b", "y"): False}

    async def test_a_message_without_destination_waits_for_every_pending_copy(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b"))
        a, _ = await owner.ready()
        await owner.split(a, "x", "y")
        x, y, _ = sorted(await owner.ready(), key=lambda m: (m.event_id, m.destination))
        await owner.settle(Retry(delay=HOUR, error="no"), x)
        await owner.settle(DELIVERED, y)
        [found] = await owner.ready()
        assert (found.event_id, found.destination, found.must_wait) == ("b", "", True)

    async def test_copies_of_one_event_do_not_wait_for_each_other(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        [whole] = await owner.ready()
        await owner.split(whole, "x", "y")
        x, y = sorted(await owner.ready(), key=lambda m: m.destination)
        await owner.hold(Held.PARKED, x)
        assert await owner.ready() == [y]
        await owner.hold(Held.WAITING, y)
        assert await owner.orphaned_queues() == [queue_of(y)]

    async def test_a_waiting_message_can_be_split(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        [whole] = await owner.ready()
        await owner.hold(Held.WAITING, whole)
        [waiting] = await owner.waiting(queue_of(whole))
        await owner.split(waiting, "x", "y")
        rows = await find_event(harness.store, "a")
        assert sorted((row.destination, row.status) for row in rows) == [("x", "PENDING"), ("y", "PENDING")]
