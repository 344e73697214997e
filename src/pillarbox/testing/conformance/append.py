"""Recording: committed events are there, rolled-back events are not."""

from __future__ import annotations

import asyncio

import pytest

from pillarbox.core.errors import DuplicateEventError
from pillarbox.core.outcome import DELIVERED, Retry
from pillarbox.testing.conformance.capability import needs
from pillarbox.testing.conformance.events import HOUR, event, keyed_events
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner, ids
from pillarbox.testing.conformance.listings import find_event


class Undone(Exception):
    """Raised to roll a transaction back."""


class AppendConformance:
    async def test_an_event_is_invisible_until_its_transaction_commits(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        async with harness.transaction() as transaction:
            await harness.record(transaction, event("a"))
            assert await owner.ready() == []
            assert await find_event(harness.store, "a") == []
        assert ids(await owner.ready()) == ["a"]

    async def test_a_rolled_back_event_leaves_nothing(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        with pytest.raises(Undone):
            async with harness.transaction() as transaction:
                await harness.record(transaction, event("a"))
                raise Undone
        assert await owner.ready() == []
        assert await find_event(harness.store, "a") == []

    async def test_the_id_of_a_rolled_back_event_is_free_again(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        with pytest.raises(Undone):
            async with harness.transaction() as transaction:
                await harness.record(transaction, event("a"))
                raise Undone
        await harness.commit(event("a"))
        assert ids(await owner.ready()) == ["a"]

    async def test_a_rolled_back_savepoint_takes_only_its_own_events_along(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        async with harness.transaction() as transaction:
            await harness.record(transaction, event("before", "k"))
            with pytest.raises(Undone):
                async with harness.savepoint(transaction):
                    await harness.record(transaction, event("inside", "k"))
                    raise Undone
            async with harness.savepoint(transaction):
                await harness.record(transaction, event("kept", "k"))
            await harness.record(transaction, event("after", "k"))
        assert ids(await owner.ready()) == ["before", "kept", "after"]

    async def test_events_of_one_transaction_keep_the_order_of_their_recording(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        async with harness.transaction() as transaction:
            await harness.record(transaction, *keyed_events("k", "a", "b"))
            await harness.record(transaction, *keyed_events("k", "c"))
        assert ids(await owner.ready()) == ["a", "b", "c"]

    async def test_a_pending_id_is_rejected_a_second_time(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        with pytest.raises(DuplicateEventError):
            await harness.commit(event("a", payload=b"again"))
        assert [m.payload for m in await owner.ready()] == [b"a"]

    async def test_a_rejected_transaction_leaves_none_of_its_events(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        with pytest.raises(DuplicateEventError):
            await harness.commit(event("b"), event("a"), event("c"))
        assert ids(await owner.ready()) == ["a"]

    async def test_an_id_may_be_pending_once_per_destination(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", destination="x"), event("a", destination="y"))
        with pytest.raises(DuplicateEventError):
            await harness.commit(event("a", destination="y"))
        assert sorted(m.destination for m in await owner.ready()) == ["x", "y"]

    async def test_an_id_is_free_again_once_it_was_delivered(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        await owner.settle(DELIVERED, *await owner.ready())
        await harness.commit(event("a"))
        assert ids(await owner.ready()) == ["a"]

    async def test_an_id_without_destination_is_free_again_once_the_first_has_one(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        await owner.settle(Retry(delay=HOUR, error="later"), *await owner.ready(), to="orders")
        await harness.commit(event("a"))
        assert ids(await owner.ready()) == ["a"]

    async def test_committed_events_survive_a_restart(self, harness: StoreHarness) -> None:
        needs(harness, "survives_restart")
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b"))
        a, _ = await owner.ready()
        await owner.settle(Retry(delay=0, error="no"), a)
        await owner.expire()
        await harness.store.aclose()
        successor = await Owner.of(await harness.second_store())
        assert [(m.event_id, m.attempts) for m in await successor.due()] == [("a", 1)]
        assert [(m.event_id, m.must_wait) for m in await successor.ready()] == [("b", True)]

    async def test_a_late_commit_with_a_lower_sequence_is_fetched_first(self, harness: StoreHarness) -> None:
        needs(harness, "concurrent_writers")
        owner = await Owner.of(harness.store)
        async with harness.transaction() as late:
            await harness.record(late, event("late", "k"))
            await harness.commit(event("early", "k"))
            [early] = await owner.ready()
            assert early.event_id == "early"
        [found] = await owner.ready(in_flight=[early.position])
        assert (found.event_id, found.id < early.id) == ("late", True)
        assert ids(await owner.ready()) == ["late", "early"]

    async def test_of_concurrent_transactions_with_one_id_only_one_commits(self, harness: StoreHarness) -> None:
        needs(harness, "concurrent_writers")
        owner = await Owner.of(harness.store)
        attempts = [harness.commit(event("a", payload=b"%d" % n)) for n in range(5)]
        results = await asyncio.gather(*attempts, return_exceptions=True)
        [winner] = [n for n, result in enumerate(results) if result is None]
        assert [type(result) for result in results].count(DuplicateEventError) == 4
        assert [m.payload for m in await owner.ready()] == [b"%d" % winner]
