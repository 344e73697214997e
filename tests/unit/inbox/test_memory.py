"""The inbox on the memory store, beyond the conformance suite."""

from datetime import UTC, datetime, timedelta

import pytest

from pillarbox import DuplicateEventError, Event, Inbox, InboxError, NotInTransactionError, Outbox
from pillarbox.core.clock import SystemClock
from pillarbox.core.rows import InboxTransaction
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.lookup import find_event

inbox = Inbox()


class Calendar(SystemClock):
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


def test_admit_accepts_a_transaction() -> None:
    assert isinstance(MemoryStore().transaction(), InboxTransaction)


async def test_admitting_outside_the_block_is_rejected() -> None:
    transaction = MemoryStore().transaction()
    with pytest.raises(NotInTransactionError):
        inbox.admit(transaction, "billing", "e1")
    with transaction:
        pass
    with pytest.raises(NotInTransactionError):
        await inbox.aadmit(transaction, "billing", "e1")


def test_a_concurrent_admission_is_retryable_and_then_sees_the_result() -> None:
    store = MemoryStore()
    with store.transaction() as second:
        with store.transaction() as first:
            assert inbox.admit(first, "billing", "e1")
            with pytest.raises(InboxError, match="e1 is being processed for billing in another open transaction"):
                inbox.admit(second, "billing", "e1")
            assert inbox.admit(second, "search", "e1")
        assert not inbox.admit(second, "billing", "e1")


def test_a_failed_commit_discards_the_record() -> None:
    store = MemoryStore()
    repeated = Event("invoice.sent", {}, event_id="invoice")
    with pytest.raises(DuplicateEventError), store.transaction() as late:
        assert inbox.admit(late, "billing", "e1")
        Outbox().record(late, repeated)
        with store.transaction() as early:
            Outbox().record(early, repeated)
    with store.transaction() as again:
        assert inbox.admit(again, "billing", "e1")


async def test_prune_deletes_only_records_past_their_retention() -> None:
    clock = Calendar()
    store = MemoryStore(clock=clock)
    with store.transaction() as transaction:
        for number in range(2500):
            inbox.admit(transaction, "billing", f"old {number}")
        Outbox().record(transaction, Event("waits", {}, event_id="waits"))
    clock.at += timedelta(days=20)
    with store.transaction() as transaction:
        inbox.admit(transaction, "billing", "young")
    clock.at += timedelta(days=11)
    assert await Inbox(retention="forever").prune(store) == 0
    assert await Inbox(retention="30 days", redelivery="7 days").prune(store) == 2500
    assert await Inbox(retention="30 days", redelivery="7 days").prune(store) == 0
    with store.transaction() as transaction:
        assert not inbox.admit(transaction, "billing", "young")
        assert inbox.admit(transaction, "billing", "old 0")
    assert len(await find_event(store, "waits")) == 1
