"""The decorator and the block handle each event once, in the caller's transaction."""

from typing import Any

import pytest

from pillarbox import ConfigurationError, Event, Inbox, InvalidConnectionError
from pillarbox.stores.memory import MemoryStore, MemoryTransaction

inbox = Inbox()
EVENT = Event("order.placed", {}, event_id="e1")


def test_a_function_is_called_once_and_returns_none_for_a_duplicate() -> None:
    store = MemoryStore()

    @inbox.once("billing")
    def bill(transaction: MemoryTransaction, event: Event, rate: int, *, currency: str) -> str:
        """Bills."""
        return f"{event.event_id} {rate} {currency}"

    with store.transaction() as transaction:
        assert bill(transaction, EVENT, 3, currency="EUR") == "e1 3 EUR"
    with store.transaction() as transaction:
        assert bill(transaction, EVENT, 3, currency="EUR") is None
    assert (bill.__name__, bill.__doc__) == ("bill", "Bills.")


async def test_a_coroutine_function_is_awaited_once() -> None:
    store = MemoryStore()

    @inbox.once("billing")
    async def bill(transaction: MemoryTransaction, event_id: str) -> str:
        return event_id

    with store.transaction() as transaction:
        assert await bill(transaction, "e1") == "e1"
        assert await bill(transaction, "e1") is None


def test_two_consumers_both_handle_the_event() -> None:
    called: list[str] = []

    @inbox.once("billing")
    def bill(_transaction: MemoryTransaction, _event: Event) -> None:
        called.append("billing")

    @inbox.once("search")
    def index(_transaction: MemoryTransaction, _event: Event) -> None:
        called.append("search")

    with MemoryStore().transaction() as transaction:
        for listener in (bill, index, bill, index):
            listener(transaction, EVENT)
    assert called == ["billing", "search"]


def test_a_failed_effect_leaves_no_record() -> None:
    store = MemoryStore()
    calls: list[str] = []

    @inbox.once("billing")
    def bill(_transaction: MemoryTransaction, event: Event) -> None:
        calls.append(event.event_id)
        if len(calls) == 1:
            raise ValueError("not yet")

    with pytest.raises(ValueError, match="not yet"), store.transaction() as transaction:
        bill(transaction, EVENT)
    for _ in range(2):
        with store.transaction() as transaction:
            bill(transaction, EVENT)
    assert calls == ["e1", "e1"]


def test_a_generator_function_is_rejected() -> None:
    def sync_one(_transaction: Any, _event: Event) -> Any:
        yield

    async def async_one(_transaction: Any, _event: Event) -> Any:
        yield

    for generator in (sync_one, async_one):
        with pytest.raises(ConfigurationError, match=r"billing: .*_one is a generator.*remove the yield"):
            inbox.once("billing")(generator)


def test_a_first_argument_other_than_a_transaction_is_rejected() -> None:
    @inbox.once("billing")
    def bill(_connection: object, _event: Event) -> None:
        raise AssertionError("must not be called")

    with pytest.raises(InvalidConnectionError, match="is not a transaction to work in"):
        bill("no transaction", EVENT)


async def test_the_block_returns_whether_the_event_is_new() -> None:
    with MemoryStore().transaction() as transaction:
        with inbox.admission(transaction, "billing", EVENT) as first:
            assert first
        with inbox.admission(transaction, "billing", EVENT) as first:
            assert not first
        async with inbox.aadmission(transaction, "search", EVENT) as first:
            assert first
        async with inbox.aadmission(transaction, "search", EVENT) as first:
            assert not first


async def test_an_exception_in_the_block_is_raised() -> None:
    with MemoryStore().transaction() as transaction:
        with pytest.raises(ValueError, match="mine"), inbox.admission(transaction, "billing", EVENT):
            raise ValueError("mine")
        with pytest.raises(ValueError, match="mine"):
            async with inbox.aadmission(transaction, "search", EVENT):
                raise ValueError("mine")
