"""The inbox: an event is admitted once per consumer, with the transaction that says so, while its receipt is kept."""

from __future__ import annotations

import pytest

from pillarbox.core.retention import Retention
from pillarbox.testing.conformance.events import HOUR
from pillarbox.testing.conformance.harness import StoreHarness


class _Undo(Exception):
    pass


async def _admitted(harness: StoreHarness, *event_ids: str, consumer: str = "billing") -> list[bool]:
    async with harness.transaction() as transaction:
        return [await harness.admit(transaction, consumer, event_id) for event_id in event_ids]


class InboxConformance:
    async def test_an_event_is_admitted_once(self, harness: StoreHarness) -> None:
        assert await _admitted(harness, "e1") == [True]
        assert await _admitted(harness, "e1", "e2") == [False, True]

    async def test_a_repeat_within_a_transaction_is_one_too(self, harness: StoreHarness) -> None:
        assert await _admitted(harness, "e1", "e1") == [True, False]

    async def test_consumers_are_apart(self, harness: StoreHarness) -> None:
        assert await _admitted(harness, "e1") == [True]
        assert await _admitted(harness, "e1", consumer="search") == [True]

    async def test_consumers_are_known_by_their_receipts(self, harness: StoreHarness) -> None:
        assert await harness.store.inspection.consumers() == []
        await _admitted(harness, "e1", "e2", consumer="search")
        await _admitted(harness, "e1")
        assert await harness.store.inspection.consumers() == [("billing", 1), ("search", 2)]
        assert await harness.store.inspection.consumers(limit=1) == [("billing", 1)]

    async def test_a_rollback_forgets(self, harness: StoreHarness) -> None:
        with pytest.raises(_Undo):
            async with harness.transaction() as transaction:
                assert await harness.admit(transaction, "billing", "e1")
                raise _Undo
        assert await _admitted(harness, "e1") == [True]

    async def test_a_savepoint_rolled_back_forgets_what_was_admitted_in_it(self, harness: StoreHarness) -> None:
        async with harness.transaction() as transaction:
            assert await harness.admit(transaction, "billing", "e1")
            with pytest.raises(_Undo):
                async with harness.savepoint(transaction):
                    assert await harness.admit(transaction, "billing", "e2")
                    raise _Undo
        assert await _admitted(harness, "e1", "e2") == [False, True]

    async def test_old_receipts_go_and_their_events_are_new_again(self, harness: StoreHarness) -> None:
        await _admitted(harness, "e1", "e2")
        assert await harness.store.upkeep.prune(Retention(receipts=0)) == 2
        assert await _admitted(harness, "e1") == [True]

    async def test_receipts_that_are_young_enough_stay(self, harness: StoreHarness) -> None:
        await _admitted(harness, "e1")
        for age in (HOUR, 1e10, None):
            assert await harness.store.upkeep.prune(Retention(history=0, dead=0, receipts=age)) == 0
        assert await _admitted(harness, "e1") == [False]

    async def test_receipts_go_in_bites(self, harness: StoreHarness) -> None:
        await _admitted(harness, "e1", "e2", "e3", "e4", "e5")
        prune = harness.store.upkeep.prune
        assert [await prune(Retention(receipts=0), most=2) for _ in range(4)] == [2, 2, 1, 0]
