"""Transactions of the memory store, beyond the conformance suite."""

from __future__ import annotations

import asyncio
from threading import Thread

import pytest

from pillarbox import open_store
from pillarbox.core.errors import DuplicateEventError, NotInTransactionError, RecordError
from pillarbox.core.event import Event
from pillarbox.core.rows import EventTransaction
from pillarbox.record import Outbox
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.lookup import find_event

outbox = Outbox()


def _event(event_id: str = "a") -> Event:
    return Event("thing.happened", {}, event_id=event_id)


def test_record_accepts_a_transaction() -> None:
    assert isinstance(MemoryStore().transaction(), EventTransaction)


async def test_recording_outside_the_block_is_rejected() -> None:
    store = MemoryStore()
    transaction = store.transaction()
    with pytest.raises(NotInTransactionError):
        outbox.record(transaction, _event())
    with transaction:
        outbox.record(transaction, _event())
    with pytest.raises(NotInTransactionError):
        outbox.record(transaction, _event("b"))


async def test_a_duplicate_of_concurrent_transactions_is_found_at_the_second_commit() -> None:
    store = MemoryStore()
    with pytest.raises(DuplicateEventError, match="'a'"), store.transaction() as second, store.transaction() as first:
        outbox.record(second, _event(), _event("b"))
        outbox.record(first, _event())
    assert len(await find_event(store, "a")) == 1
    assert await find_event(store, "b") == []


async def test_duplicates_can_be_ignored() -> None:
    store = MemoryStore()
    lenient = Outbox(duplicate="ignore")
    with store.transaction() as late:
        lenient.record(late, _event(), _event("b"))
        with store.transaction() as early:
            lenient.record(early, _event(), _event())
    assert len(await find_event(store, "a")) == 1
    assert len(await find_event(store, "b")) == 1


async def test_a_commit_in_another_thread_wakes_this_loop() -> None:
    store = MemoryStore()
    nap = asyncio.create_task(store.wakeup.wait(60))

    def commit() -> None:
        with store.transaction() as transaction:
            outbox.record(transaction, _event())

    async with asyncio.timeout(30):
        await asyncio.sleep(0)
        Thread(target=commit).start()
        assert await nap is True


async def test_a_wakeup_before_the_wait_is_not_lost() -> None:
    store = MemoryStore()
    await store.wakeup.request("relay", 60)
    with store.transaction() as transaction:
        outbox.record(transaction, _event())
    assert await store.wakeup.wait(60) is True
    await store.wakeup.request("relay", 60)
    assert await store.wakeup.wait(0) is False


def test_a_payload_above_the_limit_of_the_store_is_rejected() -> None:
    store = MemoryStore(max_payload=5)
    with store.transaction() as transaction:
        with pytest.raises(RecordError, match="has 6 bytes, and max_payload of the store allows 5"):
            Outbox().record(transaction, Event("a", b"123456"))
        Outbox().record(transaction, Event("a", b"12345"))
    with store.clone().transaction() as transaction, pytest.raises(RecordError, match="max_payload of the store"):
        Outbox().record(transaction, Event("a", b"123456"))


def test_the_url_of_a_memory_store_has_the_limit_of_the_settings() -> None:
    store = open_store("memory://", max_payload=5)
    assert isinstance(store, MemoryStore)
    with store.transaction() as transaction, pytest.raises(RecordError, match="allows 5"):
        Outbox().record(transaction, Event("a", b"123456"))
