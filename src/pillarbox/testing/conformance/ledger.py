"""The ledger: the store knows what was sent after the message is deleted, and what may have been sent."""

from __future__ import annotations

from pillarbox.admin.admin import AdminStore
from pillarbox.core.outcome import DELIVERED, Dead, Resolved, Retry
from pillarbox.core.store import Ledger, PriorSend, Retention
from pillarbox.testing.conformance.events import HOUR, event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.conformance.listings import dead_letters

NOT_SENT, SENT, UNKNOWN = PriorSend.NOT_SENT, PriorSend.SENT, PriorSend.UNKNOWN


async def kept(harness: StoreHarness) -> tuple[AdminStore, Ledger]:
    """Return a store with a ledger."""
    store = await harness.second_store(ledger=True)
    assert store.ledger is not None
    return store, store.ledger


class LedgerConformance:
    async def test_a_store_without_a_ledger_has_none(self, harness: StoreHarness) -> None:
        assert (await harness.second_store(ledger=False)).ledger is None

    async def test_a_delivered_event_is_known_when_it_is_recorded_again(self, harness: StoreHarness) -> None:
        store, ledger = await kept(harness)
        owner = await Owner.of(store)
        for before in (NOT_SENT, SENT):
            await harness.commit(event("a"))
            [message] = await owner.ready()
            assert await ledger.begin([Resolved(message, "orders")]) == [before]
            await owner.settle(DELIVERED, message, to="orders")

    async def test_a_delivered_event_is_known_without_history(self, harness: StoreHarness) -> None:
        store = await harness.second_store(history=False, ledger=True)
        assert store.ledger is not None
        owner = await Owner.of(store)
        for before in (NOT_SENT, SENT):
            await harness.commit(event("a"))
            [message] = await owner.ready()
            assert await store.ledger.begin([Resolved(message, "orders")]) == [before]
            await owner.settle(DELIVERED, message, to="orders")

    async def test_each_destination_has_its_own_entry(self, harness: StoreHarness) -> None:
        store, ledger = await kept(harness)
        owner = await Owner.of(store)
        await harness.commit(event("a"), event("b"))
        a, b = await owner.ready()
        await ledger.begin([Resolved(a, "left")])
        await owner.settle(DELIVERED, a, to="left")
        batch = [Resolved(a, "right"), Resolved(a, "left"), Resolved(b, "left")]
        assert await ledger.begin(batch) == [NOT_SENT, SENT, NOT_SENT]

    async def test_a_send_that_was_begun_and_not_settled_is_unknown(self, harness: StoreHarness) -> None:
        store, ledger = await kept(harness)
        owner = await Owner.of(store)
        await harness.commit(event("a"))
        [message] = await owner.ready()
        assert ledger.records_sends
        for before in (NOT_SENT, UNKNOWN, UNKNOWN):
            assert await ledger.begin([Resolved(message, "orders")]) == [before]

    async def test_a_send_after_a_settled_failure_is_a_new_send(self, harness: StoreHarness) -> None:
        store, ledger = await kept(harness)
        owner = await Owner.of(store)
        await harness.commit(event("a"))
        [message] = await owner.ready()
        for _ in range(3):
            assert await ledger.begin([Resolved(message, "orders")]) == [NOT_SENT]
            assert await ledger.begin([Resolved(message, "orders")]) == [UNKNOWN]
            await owner.settle(Retry(delay=0, error="no"), message, to="orders")
            [message] = await owner.due()
        await owner.count_attempt("away", message, to="orders")
        [message] = await owner.due()
        assert await ledger.begin([Resolved(message, "orders")]) == [NOT_SENT]

    async def test_a_dead_event_is_sent_when_an_operator_retries_it(self, harness: StoreHarness) -> None:
        store, ledger = await kept(harness)
        owner = await Owner.of(store)
        await harness.commit(event("a"))
        [message] = await owner.ready()
        await ledger.begin([Resolved(message, "orders")])
        await owner.settle(Dead(error="no"), message, to="orders")
        [dead_letter] = await dead_letters(store)
        assert await store.admin.dead_letters.retry([dead_letter.id]) == 1
        [again] = await owner.ready()
        assert await ledger.begin([Resolved(again, "orders")]) == [NOT_SENT]

    async def test_an_operator_may_have_a_delivered_event_sent_again(self, harness: StoreHarness) -> None:
        store, ledger = await kept(harness)
        owner = await Owner.of(store)
        await harness.commit(event("a"))
        [message] = await owner.ready()
        await owner.settle(DELIVERED, message, to="orders")
        await harness.commit(event("a"))
        [repeat] = await owner.ready()
        await owner.settle(Dead(error="no"), repeat, to="orders")
        [dead_letter] = await dead_letters(store)
        await store.admin.dead_letters.retry([dead_letter.id])
        [again] = await owner.ready()
        assert await ledger.begin([Resolved(again, "orders")]) == [NOT_SENT]

    async def test_the_history_knows_what_was_delivered(self, harness: StoreHarness) -> None:
        store = await harness.second_store(ledger="history")
        ledger, owner = store.ledger, await Owner.of(store)
        assert ledger is not None
        assert not ledger.records_sends
        await harness.commit(event("a"), event("b"))
        a, b = await owner.ready()
        batch = [Resolved(a, "left"), Resolved(a, "right"), Resolved(b, "left")]
        for _ in range(2):
            assert await ledger.begin(batch) == [NOT_SENT] * 3
        await owner.settle(DELIVERED, a, to="left")
        assert await ledger.begin(batch) == [SENT, NOT_SENT, NOT_SENT]
        assert await ledger.begin([]) == []

    async def test_the_history_is_read_for_the_first_send_only_unless_an_operator_retries(
        self, harness: StoreHarness
    ) -> None:
        store = await harness.second_store(ledger="history")
        ledger, owner = store.ledger, await Owner.of(store)
        assert ledger is not None
        for outcome in (DELIVERED, Dead(error="no")):
            await harness.commit(event("a"))
            [message] = await owner.ready()
            await owner.settle(outcome, message, to="orders")
        for amended in (False, True):
            [dead_letter] = await dead_letters(store)
            if amended:
                assert await store.admin.dead_letters.edit(dead_letter.id, payload=b"{}")
            else:
                assert await store.admin.dead_letters.retry([dead_letter.id]) == 1
            [again] = await owner.ready()
            assert await ledger.begin([Resolved(again, "orders")]) == [NOT_SENT]
            await owner.settle(Dead(error="no"), again, to="orders")

    async def test_without_history_nothing_is_known(self, harness: StoreHarness) -> None:
        assert (await harness.second_store(history=False, ledger="history")).ledger is None

    async def test_an_empty_batch_is_accepted(self, harness: StoreHarness) -> None:
        _, ledger = await kept(harness)
        assert await ledger.begin([]) == []

    async def test_events_of_pruned_ledger_entries_are_new_again(self, harness: StoreHarness) -> None:
        store, ledger = await kept(harness)
        owner = await Owner.of(store)
        await harness.commit(*(event(name) for name in "abc"))
        messages = await owner.ready()
        batch = [Resolved(message, "orders") for message in messages]
        await ledger.begin(batch)
        await owner.settle(DELIVERED, *messages, to="orders")
        for age in (HOUR, 1e10, None):
            assert await store.pruning.prune(Retention(ledger=age)) == 0
        assert await ledger.begin(batch) == [SENT] * 3
        assert [await store.pruning.prune(Retention(ledger=0), limit=2) for _ in range(3)] == [2, 1, 0]
        assert await ledger.begin(batch) == [NOT_SENT] * 3

    async def test_entries_of_sends_in_flight_are_kept(self, harness: StoreHarness) -> None:
        store, ledger = await kept(harness)
        owner = await Owner.of(store)
        await harness.commit(event("a"))
        [message] = await owner.ready()
        await ledger.begin([Resolved(message, "orders")])
        assert await store.pruning.prune(Retention(ledger=0)) == 0
