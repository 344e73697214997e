"""Delays: retries and delayed events are fetched when they are due, not before, and keep their position."""

from __future__ import annotations

import pytest

from pillarbox.core.message import Held
from pillarbox.core.outcome import DELIVERED, Retry
from pillarbox.testing.conformance.events import HOUR, at, event, keyed_events
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner, ids
from pillarbox.testing.conformance.listings import find_event
from pillarbox.testing.waiting import eventually


class DelayConformance:
    async def test_a_retry_without_delay_is_due_at_once(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        [message] = await owner.ready()
        await owner.settle(Retry(delay=0, error="no"), message)
        assert await owner.ready() == []
        [again] = await owner.due()
        assert (again.event_id, again.id, again.attempts, again.deferrals) == ("a", message.id, 1, 0)
        assert (again.held, again.must_wait) == (None, False)

    async def test_a_retry_does_not_come_before_it_is_due(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        await owner.settle(Retry(delay=HOUR, error="no"), *await owner.ready())
        assert await owner.ready() == []
        assert await owner.due() == []

    async def test_a_retry_comes_once_it_is_due(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        await owner.settle(Retry(delay=0.05, error="no"), *await owner.ready())
        [again] = await eventually(owner.due)
        assert again.event_id == "a"

    async def test_a_retry_counts_an_attempt_and_a_deferral_does_not(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        await owner.settle(Retry(delay=0, error="one"), *await owner.ready())
        await owner.settle(Retry(delay=0, error="two", counted=False), *await owner.due())
        await owner.settle(Retry(delay=0, error="three", counted=False), *await owner.due())
        [message] = await owner.due()
        assert (message.attempts, message.deferrals) == (1, 2)
        [row] = await find_event(harness.store, "a")
        assert (row.status, row.attempts, row.retry_count, row.last_error) == ("PENDING", 1, 3, "three")

    async def test_a_retry_carries_the_destination_it_was_resolved_to(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        await owner.settle(Retry(delay=0, error="no"), *await owner.ready(), to="orders")
        [message] = await owner.due()
        assert message.destination == "orders"

    async def test_a_retry_survives_a_takeover(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        await owner.settle(Retry(delay=0, error="no"), *await owner.ready())
        successor = await owner.taken_over(await harness.second_store())
        [message] = await successor.due()
        assert (message.event_id, message.attempts) == ("a", 1)

    async def test_a_retry_of_a_waiting_or_parked_message_is_a_plain_retry(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        [message] = await owner.ready()
        await owner.hold(Held.PARKED, message, to="x")
        [parked] = await owner.parked("x")
        await owner.settle(Retry(delay=0, error="no"), parked)
        assert await owner.parked("x") == []
        [again] = await owner.due()
        assert again.held is None

    async def test_a_delayed_event_does_not_come_before_it_is_due(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", available_at=at(HOUR)))
        assert await owner.ready() == []
        assert await owner.due() == []

    async def test_a_delayed_event_comes_once_it_is_due(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", available_at=at(0.05)))
        [message] = await eventually(owner.due)
        assert (message.event_id, message.attempts, message.must_wait) == ("a", 0, False)

    async def test_a_delayed_event_holds_nothing_back_before_it_is_due(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("delayed", "k", available_at=at(HOUR)), event("b", "k"))
        [message] = await owner.ready()
        assert (message.event_id, message.must_wait) == ("b", False)

    async def test_a_delayed_event_takes_its_position_in_its_key_when_it_is_due(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(
            event("a", "k"), event("due", "k", available_at=at(-1)), event("b", "k"), event("c", "other")
        )
        ready = {m.event_id: m.must_wait for m in await owner.ready()}
        assert ready == {"a": False, "b": True, "c": False}
        [due] = await owner.due()
        assert (due.event_id, due.must_wait) == ("due", False)

    async def test_a_due_event_waits_for_an_earlier_retry_of_its_key(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"), event("delayed", "k", available_at=at(-1)))
        await owner.settle(Retry(delay=HOUR, error="no"), *await owner.ready())
        [delayed] = await owner.due()
        assert (delayed.event_id, delayed.must_wait) == ("delayed", True)

    async def test_a_waiting_message_keeps_its_due_time(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"), event("delayed", "k", available_at=at(-1)))
        [a] = await owner.ready()
        await owner.settle(Retry(delay=HOUR, error="no"), a)
        [delayed] = await owner.due()
        await owner.hold(Held.WAITING, delayed)
        assert await owner.due() == []
        [row] = await find_event(harness.store, "delayed")
        assert row.status == "PENDING"

    @pytest.mark.parametrize("counted", [True, False])
    async def test_a_note_counts_a_send_and_leaves_the_message_where_it_is(
        self, harness: StoreHarness, counted: bool
    ) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b"))
        a, b = await owner.ready()
        settled = await owner.count_attempt("connection refused", a, counted=counted)
        assert settled.count == 1
        noted, untouched = await owner.ready()
        assert (noted.id, noted.attempts, noted.deferrals) == (a.id, int(counted), int(not counted))
        assert (noted.available_at, noted.held) == (None, None)
        assert untouched == b
        [row] = await find_event(harness.store, "a")
        assert (row.status, row.retry_count, row.last_error) == ("PENDING", 1, "connection refused")

    async def test_a_delay_beyond_the_time_range_ends_at_its_end(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        [a] = await owner.ready()
        assert (await owner.settle(Retry(delay=1e18, error="no"), a)).count == 1
        assert (await owner.ready(), await owner.due()) == ([], [])

    async def test_a_noted_message_has_its_destination_and_is_settled_under_it(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        [a] = await owner.ready()
        await owner.count_attempt("about to be sent", a, counted=True, to="orders")
        a = a.to("orders")
        assert await owner.ready(in_flight=[a.position]) == []
        assert (await owner.settle(DELIVERED, a)).count == 1
        [row] = await find_event(harness.store, "a")
        assert (row.status, row.destination, row.attempts) == ("PUBLISHED", "orders", 1)

    async def test_an_error_with_control_characters_is_stored_without_failing(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"), event("b"), event("c"))
        a, b, c = await owner.ready()
        nasty = "no\x00thing \x1b[31m\r\n\udcff é" + "x" * 100_000
        assert (await owner.settle(Retry(delay=0, error=nasty), a)).count == 1
        assert (await owner.count_attempt(nasty, b)).count == 1
        for event_id in ("a", "b"):
            [row] = await find_event(harness.store, event_id)
            assert row.last_error is not None
            assert row.last_error.startswith("no")
            assert "\x00" not in row.last_error
        assert (await owner.settle(DELIVERED, c)).count == 1

    async def test_waiting_messages_of_one_key_do_not_block_other_keys(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("stuck", "a", "b"), *keyed_events("free", "c", "d"), event("e"))
        [a, *_] = await owner.ready()
        await owner.settle(Retry(delay=HOUR, error="no"), a)
        waiting = {m.event_id: m.must_wait for m in await owner.ready()}
        assert waiting == {"b": True, "c": False, "d": False, "e": False}
        assert ids(await owner.due()) == []
