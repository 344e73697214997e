"""Retention: old rows are pruned in small chunks; pending messages are never pruned."""

from __future__ import annotations

from pillarbox.admin.listing import EventFilter
from pillarbox.core.message import Held, Status
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.core.store import Retention
from pillarbox.pruning import prune_in_batches
from pillarbox.testing.conformance.capability import needing, needs
from pillarbox.testing.conformance.events import HOUR, at, event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.conformance.listings import dead_letters, find_event


async def _deliver(harness: StoreHarness, owner: Owner, count: int) -> None:
    await harness.commit(*(event(f"done {n}") for n in range(count)))
    await owner.settle(DELIVERED, *await owner.ready())


async def _make_dead_letters(harness: StoreHarness, owner: Owner, count: int) -> None:
    await harness.commit(*(event(f"dead {n}") for n in range(count)))
    await owner.settle(Dead(error="no"), *await owner.ready())


class RetentionConformance:
    async def test_preparing_twice_is_fine(self, harness: StoreHarness) -> None:
        await harness.store.schema.prepare()
        await harness.store.schema.prepare()
        owner = await Owner.of(harness.store)
        await _deliver(harness, owner, 1)
        [row] = await find_event(harness.store, "done 0")
        assert row.status == "PUBLISHED"

    async def test_old_history_is_pruned(self, harness: StoreHarness) -> None:
        needs(harness, "history_without_partitions")
        owner = await Owner.of(harness.store)
        await _deliver(harness, owner, 3)
        assert await harness.store.pruning.prune(Retention(history=0)) == 3
        assert await find_event(harness.store, "done 0") == []

    async def test_old_dead_letters_are_pruned(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await _make_dead_letters(harness, owner, 3)
        assert await harness.store.pruning.prune(Retention(dead=0)) == 3
        assert await dead_letters(harness.store) == []

    async def test_recent_rows_are_kept(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await _deliver(harness, owner, 1)
        await _make_dead_letters(harness, owner, 1)
        assert await harness.store.pruning.prune(Retention(history=HOUR, dead=HOUR)) == 0
        assert await harness.store.pruning.prune(Retention(history=1e10, dead=1e10)) == 0
        assert await find_event(harness.store, "done 0") != []
        assert len(await dead_letters(harness.store)) == 1

    async def test_none_keeps_rows_forever(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await _deliver(harness, owner, 1)
        await _make_dead_letters(harness, owner, 1)
        assert await harness.store.pruning.prune(Retention()) == 0
        assert await find_event(harness.store, "done 0") != []
        assert len(await dead_letters(harness.store)) == 1

    async def test_one_prune_deletes_one_chunk(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await _make_dead_letters(harness, owner, 5)
        assert await harness.store.pruning.prune(Retention(dead=0), limit=2) == 2
        assert [dead_letter.event_id for dead_letter in await dead_letters(harness.store)] == [
            "dead 4",
            "dead 3",
            "dead 2",
        ]
        assert await harness.store.pruning.prune(Retention(dead=0), limit=2) == 2
        assert await harness.store.pruning.prune(Retention(dead=0), limit=2) == 1
        assert await harness.store.pruning.prune(Retention(dead=0), limit=2) == 0

    async def test_history_is_pruned_in_chunks(self, harness: StoreHarness) -> None:
        needs(harness, "history_without_partitions")
        owner = await Owner.of(harness.store)
        await _deliver(harness, owner, 5)
        batches = [await harness.store.pruning.prune(Retention(history=0, dead=0), limit=2) for _ in range(4)]
        assert batches == [2, 2, 1, 0]

    @needing("listings")
    async def test_one_prune_covers_every_kind_of_row(self, harness: StoreHarness) -> None:
        needs(harness, "history_without_partitions")
        owner = await Owner.of(harness.store)
        await _deliver(harness, owner, 5)
        await _make_dead_letters(harness, owner, 5)
        kept = Retention(history=0, dead=0)
        await harness.store.pruning.prune(kept, limit=2)
        delivered = await harness.store.admin.events.list(EventFilter(status=Status.PUBLISHED), limit=10)
        assert (len(delivered.events), len(await dead_letters(harness.store))) == (3, 3)

    async def test_repeated_prunes_delete_everything_old(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await _make_dead_letters(harness, owner, 5)
        assert sum([gone async for gone in prune_in_batches(harness.store.pruning, Retention(dead=0))]) == 5
        assert await dead_letters(harness.store) == []

    async def test_pending_messages_are_never_pruned(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        names = ["ready", "retry", "blocked", "parked", "waiting"]
        await harness.commit(*(event(name, key=name) for name in names), event("delayed", available_at=at(HOUR)))
        _, retry, blocked, parked, waiting = await owner.ready()
        await owner.settle(Retry(delay=HOUR, error="no"), retry)
        await owner.settle(Dead(error="no", block=True), blocked)
        await owner.hold(Held.PARKED, parked)
        await owner.hold(Held.WAITING, waiting)
        await harness.store.pruning.prune(Retention(history=0, dead=0))
        for name in [*names, "delayed"]:
            assert len(await find_event(harness.store, name)) == 1
