"""The decorator and the block: an effect once per event, in the transaction it is given."""

from typing import Any

import pytest

from pillarbox import ConfigurationError, Event, Inbox, InvalidConnectionError
from pillarbox.stores.memory import MemoryStore, MemoryTransaction

inbox = Inbox()
EVENT = Event("order.placed", {}, event_id="e1")


def test_a_function_is_called_for_the_first_and_answers_none_for_a_repeat() -> None:
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


async def test_a_coroutine_function_is_awaited_likewise() -> None:
    store = MemoryStore()

    @inbox.once("billing")
    async def bill(transaction: MemoryTransaction, event_id: str) -> str:
        return event_id

    with store.transaction() as transaction:
        assert await bill(transaction, "e1") == "e1"
        assert await bill(transaction, "e1") is None


def test_two_functions_with_names_of_their_own_both_have_their_effect() -> None:
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


def test_an_effect_that_raises_is_not_remembered() -> None:
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


def test_a_generator_is_refused_because_calling_it_would_do_nothing() -> None:
    def sync_one(_transaction: Any, _event: Event) -> Any:
        yield

    async def async_one(_transaction: Any, _event: Event) -> Any:
        yield

    for generator in (sync_one, async_one):
        with pytest.raises(ConfigurationError, match=r"billing: .*_one is a generator.*remove the yield"):
            inbox.once("billing")(generator)


def test_a_first_argument_that_is_no_transaction_is_refused_before_the_effect() -> None:
    @inbox.once("billing")
    def bill(_handle: object, _event: Event) -> None:
        raise AssertionError("must not be called")

    with pytest.raises(InvalidConnectionError, match="is not a transaction to work in"):
        bill("no transaction", EVENT)


async def test_the_block_tells_whether_the_event_is_new() -> None:
    with MemoryStore().transaction() as transaction:
        with inbox.admission(transaction, "billing", EVENT) as first:
            assert first
        with inbox.admission(transaction, "billing", EVENT) as first:
            assert not first
        async with inbox.aadmission(transaction, "search", EVENT) as first:
            assert first
        async with inbox.aadmission(transaction, "search", EVENT) as first:
            assert not first


async def test_what_is_raised_in_a_block_gets_out() -> None:
    with MemoryStore().transaction() as transaction:
        with pytest.raises(ValueError, match="mine"), inbox.admission(transaction, "billing", EVENT):
            raise ValueError("mine")
        with pytest.raises(ValueError, match="mine"):
            async with inbox.aadmission(transaction, "search", EVENT):
                raise ValueError("mine")
