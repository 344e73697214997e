"""The inbox: an event is admitted once per consumer and transaction, as long as its inbox record is kept."""

from __future__ import annotations

import pytest

from pillarbox.admin.overview import ConsumerView
from pillarbox.core.statistics import ConsumerStatistics
from pillarbox.core.store import Retention
from pillarbox.testing.conformance.capability import needing
from pillarbox.testing.conformance.events import HOUR
from pillarbox.testing.conformance.harness import StoreHarness


class _Undo(Exception):
    pass


async def _admitted(harness: StoreHarness, *event_ids: str, consumer: str = "billing") -> list[bool]:
    async with harness.transaction() as transaction:
        return [await harness.admit(transaction, consumer, event_id) for event_id in event_ids]


async def _add_statistics(harness: StoreHarness, *each: ConsumerStatistics) -> None:
    for statistics in each:
        async with harness.transaction() as transaction:
            await harness.add_statistics(transaction, statistics)


class InboxConformance:
    async def test_an_event_is_admitted_once(self, harness: StoreHarness) -> None:
        assert await _admitted(harness, "e1") == [True]
        assert await _admitted(harness, "e1", "e2") == [False, True]

    async def test_a_duplicate_within_a_transaction_is_detected(self, harness: StoreHarness) -> None:
        assert await _admitted(harness, "e1", "e1") == [True, False]

    async def test_consumers_are_independent(self, harness: StoreHarness) -> None:
        assert await _admitted(harness, "e1") == [True]
        assert await _admitted(harness, "e1", consumer="search") == [True]

    @needing("listings")
    async def test_consumers_are_listed_by_their_inbox_records(self, harness: StoreHarness) -> None:
        assert await harness.store.admin.inspection.consumers() == []
        await _admitted(harness, "e1", "e2", consumer="search")
        await _admitted(harness, "e1")
        assert await harness.store.admin.inspection.consumers() == [
            ConsumerView("billing", 1),
            ConsumerView("search", 2),
        ]
        assert await harness.store.admin.inspection.consumers(limit=1) == [ConsumerView("billing", 1)]

    @needing("listings")
    async def test_statistics_add_up_and_keep_the_latest_error(self, harness: StoreHarness) -> None:
        await _add_statistics(
            harness,
            ConsumerStatistics("billing", processed=3, duplicates=1, failures=1, last_error="late", failed_ago=0.0),
            ConsumerStatistics("billing", processed=4, dead_lettered=2),
            ConsumerStatistics("billing"),
        )
        [seen] = await harness.store.admin.inspection.consumers()
        assert (seen.name, seen.records) == ("billing", 0)
        assert (seen.processed, seen.duplicates, seen.failures, seen.dead_lettered) == (7, 1, 1, 2)
        assert seen.last_error == "late"
        await _add_statistics(harness, ConsumerStatistics("billing", failures=1, last_error="later", failed_ago=0.0))
        [again] = await harness.store.admin.inspection.consumers()
        assert (again.failures, again.last_error) == (2, "later")
        assert seen.last_failed_at is not None
        assert again.last_failed_at is not None
        assert again.last_failed_at >= seen.last_failed_at

    @needing("listings")
    async def test_the_latest_failure_is_determined_by_its_time(self, harness: StoreHarness) -> None:
        for consumer, ago in (("a", 0.0), ("b", 60.5)):
            await _add_statistics(harness, ConsumerStatistics(consumer, failures=1, last_error="no", failed_ago=ago))
        just, before = [seen.last_failed_at for seen in await harness.store.admin.inspection.consumers()]
        assert just is not None
        assert before is not None
        assert 50 <= (just - before).total_seconds() <= 60.5

    @needing("listings")
    async def test_consumers_are_listed_by_inbox_records_or_statistics(self, harness: StoreHarness) -> None:
        await _admitted(harness, "e1", consumer="by hand")
        await _admitted(harness, "e1", "e2", consumer="both")
        failed = ConsumerStatistics("all failed", failures=1, last_error="no", failed_ago=0.0)
        await _add_statistics(harness, ConsumerStatistics("both", processed=2), failed)
        seen = {view.name: view for view in await harness.store.admin.inspection.consumers()}
        assert list(seen) == sorted(seen)
        assert seen["by hand"] == ConsumerView("by hand", 1)
        assert seen["both"] == ConsumerView("both", 2, 2, 0, 0, 0)
        assert (seen["all failed"].records, seen["all failed"].failures) == (0, 1)
        assert [view.name for view in await harness.store.admin.inspection.consumers(limit=2)] == sorted(seen)[:2]

    @needing("listings")
    async def test_statistics_commit_and_roll_back_with_their_transaction(self, harness: StoreHarness) -> None:
        with pytest.raises(_Undo):
            async with harness.transaction() as transaction:
                await harness.add_statistics(transaction, ConsumerStatistics("billing", processed=1))
                raise _Undo
        async with harness.transaction() as transaction:
            await harness.add_statistics(transaction, ConsumerStatistics("search", processed=1))
            with pytest.raises(_Undo):
                async with harness.savepoint(transaction):
                    await harness.add_statistics(transaction, ConsumerStatistics("search", processed=10))
                    raise _Undo
        assert await harness.store.admin.inspection.consumers() == [ConsumerView("search", 0, 1, 0, 0, 0)]

    @needing("listings")
    async def test_statistics_are_pruned_with_the_inbox_records(self, harness: StoreHarness) -> None:
        await _add_statistics(
            harness, ConsumerStatistics("billing", processed=1), ConsumerStatistics("search", processed=1)
        )
        for age in (2 * HOUR, 1e10, None):
            await harness.store.pruning.prune(Retention(history=0, dead=0, ledger=0, audit=0, inbox=age))
        assert len(await harness.store.admin.inspection.consumers()) == 2
        await harness.store.pruning.prune(Retention(inbox=0))
        assert await harness.store.admin.inspection.consumers() == []

    async def test_a_rollback_removes_the_admission(self, harness: StoreHarness) -> None:
        with pytest.raises(_Undo):
            async with harness.transaction() as transaction:
                assert await harness.admit(transaction, "billing", "e1")
                raise _Undo
        assert await _admitted(harness, "e1") == [True]

    async def test_a_rolled_back_savepoint_removes_its_admissions(self, harness: StoreHarness) -> None:
        async with harness.transaction() as transaction:
            assert await harness.admit(transaction, "billing", "e1")
            with pytest.raises(_Undo):
                async with harness.savepoint(transaction):
                    assert await harness.admit(transaction, "billing", "e2")
                    raise _Undo
        assert await _admitted(harness, "e1", "e2") == [False, True]

    async def test_events_of_pruned_inbox_records_are_new_again(self, harness: StoreHarness) -> None:
        await _admitted(harness, "e1", "e2")
        assert await harness.store.pruning.prune(Retention(inbox=0)) == 2
        assert await _admitted(harness, "e1") == [True]

    async def test_recent_inbox_records_are_kept(self, harness: StoreHarness) -> None:
        await _admitted(harness, "e1")
        for age in (HOUR, 1e10, None):
            assert await harness.store.pruning.prune(Retention(history=0, dead=0, inbox=age)) == 0
        assert await _admitted(harness, "e1") == [False]

    async def test_inbox_records_are_pruned_in_chunks(self, harness: StoreHarness) -> None:
        await _admitted(harness, "e1", "e2", "e3", "e4", "e5")
        prune = harness.store.pruning.prune
        assert [await prune(Retention(inbox=0), limit=2) for _ in range(4)] == [2, 2, 1, 0]
