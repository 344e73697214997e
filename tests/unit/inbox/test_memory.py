"""What the inbox does on a store in memory beyond the suite for all stores."""

from datetime import UTC, datetime, timedelta

import pytest

from pillarbox import DuplicateEventError, Event, Inbox, InboxError, NotInTransactionError, Outbox
from pillarbox.core.clock import SystemClock
from pillarbox.core.row import InProcessInbox
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.lookup import find_event

inbox = Inbox()


class Calendar(SystemClock):
    """A clock that a test turns on."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


def test_a_transaction_is_what_admit_takes() -> None:
    assert isinstance(MemoryStore().transaction(), InProcessInbox)


async def test_admitting_outside_the_block_is_refused() -> None:
    transaction = MemoryStore().transaction()
    with pytest.raises(NotInTransactionError):
        inbox.admit(transaction, "billing", "e1")
    with transaction:
        pass
    with pytest.raises(NotInTransactionError):
        await inbox.aadmit(transaction, "billing", "e1")


def test_who_comes_while_another_is_at_it_is_told_to_try_again_and_then_how_it_ended() -> None:
    store = MemoryStore()
    with store.transaction() as second:
        with store.transaction() as first:
            assert inbox.admit(first, "billing", "e1")
            with pytest.raises(InboxError, match="e1 is just being handled for billing in another transaction"):
                inbox.admit(second, "billing", "e1")
            assert inbox.admit(second, "search", "e1")
        assert not inbox.admit(second, "billing", "e1")


def test_a_commit_that_is_refused_forgets_the_receipt() -> None:
    store = MemoryStore()
    repeated = Event("invoice.sent", {}, event_id="invoice")
    with pytest.raises(DuplicateEventError), store.transaction() as late:
        assert inbox.admit(late, "billing", "e1")
        Outbox().record(late, repeated)
        with store.transaction() as early:
            Outbox().record(early, repeated)
    with store.transaction() as again:
        assert inbox.admit(again, "billing", "e1")


async def test_prune_drops_what_is_older_than_the_retention_and_nothing_else() -> None:
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
    assert await Inbox(retention=None).prune(store) == 0
    assert await Inbox(retention="30 days", redelivery="7 days").prune(store) == 2500
    assert await Inbox(retention="30 days", redelivery="7 days").prune(store) == 0
    with store.transaction() as transaction:
        assert not inbox.admit(transaction, "billing", "young")
        assert inbox.admit(transaction, "billing", "old 0")
    assert len(await find_event(store, "waits")) == 1
