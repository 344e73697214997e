"""Settlement: a delivered message is removed once, and each decision of a batch has its effect."""

from __future__ import annotations

from pillarbox.core.outcome import DELIVERED, Dead, Decision, Outcome, Retry
from pillarbox.testing.conformance.events import HOUR, event, keyed_events
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.conformance.listings import dead_letters, find_event


class SettlementConformance:
    async def test_a_delivered_message_moves_to_the_history(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        [message] = await owner.ready()
        settled = await owner.settle(DELIVERED, message, to="orders")
        assert (settled.count, settled.duplicates, settled.lost) == (1, 0, frozenset())
        assert await owner.ready() == []
        [row] = await find_event(harness.store, "a")
        assert (row.status, row.destination, row.event_type, row.key) == (
            "PUBLISHED",
            "orders",
            "thing.happened",
            "k",
        )
        assert row.published_at is not None
        assert (row.attempts, row.next_retry_at) == (0, None)

    async def test_without_history_a_delivered_message_is_deleted(self, harness: StoreHarness) -> None:
        store = await harness.second_store(history=False)
        owner = await Owner.of(store)
        await harness.commit(event("a"), event("b"))
        a, b = await owner.ready()
        assert (await owner.settle(DELIVERED, a)).count == 1
        assert await find_event(store, "a") == []
        assert await owner.ready() == [b]

    async def test_a_delivery_keeps_the_number_of_failed_attempts(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        await owner.settle(Retry(delay=0, error="no"), *await owner.ready())
        await owner.settle(DELIVERED, *await owner.due())
        [row] = await find_event(harness.store, "a")
        assert (row.status, row.attempts, row.retry_count) == ("PUBLISHED", 1, 1)

    async def test_a_second_settlement_of_one_message_writes_nothing(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        [message] = await owner.ready()
        await owner.settle(DELIVERED, message)
        assert (await owner.settle(DELIVERED, message)).count == 0
        assert (await owner.settle(Dead(error="no"), message)).count == 0
        assert (await owner.settle(Retry(delay=0, error="no"), message)).count == 0
        assert len(await find_event(harness.store, "a")) == 1
        assert await dead_letters(harness.store) == []

    async def test_a_decision_written_twice_counts_one_attempt(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("retried"), event("noted"), event("blocked"))
        retried, noted, blocked = await owner.ready()
        for _ in range(2):  # As after a lost answer to the first settlement.
            await owner.settle(Retry(delay=HOUR, error="no"), retried)
            await owner.count_attempt("no", noted)
            await owner.settle(Dead(error="no", block=True), blocked)
        for name in ("retried", "noted", "blocked"):
            [row] = await find_event(harness.store, name)
            assert (name, row.retry_count) == (name, 1)

    async def test_an_attempt_counted_before_the_send_counts_once_or_is_reverted(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(
            event("rejected"), event("nacked"), event("cut off"), event("dead-lettered"), event("stuck")
        )
        await owner.count_attempt("about to be sent", *await owner.ready(), counted=True)
        rejected, nacked, cut_off, dead_lettered, stuck = await owner.ready()
        for _ in range(2):  # As after a lost answer to the first settlement.
            await owner.settle(Retry(delay=HOUR, error="no", counted_before_send=True), rejected)
            await owner.settle(Retry(delay=HOUR, error="no", counted=False, counted_before_send=True), nacked)
            await owner.count_attempt("gone", cut_off, counted_before_send=True)
            await owner.settle(Dead(error="no", counted_before_send=True), dead_lettered)
            await owner.settle(Dead(error="no", block=True, counted_before_send=True), stuck)
        counts = {}
        for name in ("rejected", "nacked", "cut off", "dead-lettered", "stuck"):
            [row] = await find_event(harness.store, name)
            counts[name] = (row.attempts, row.retry_count)
        counted_attempt, deferral = (1, 1), (0, 1)
        assert counts == {
            "rejected": counted_attempt,
            "nacked": deferral,
            "cut off": deferral,
            "dead-lettered": counted_attempt,
            "stuck": counted_attempt,
        }

    async def test_one_settlement_contains_every_kind_of_decision(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        outcomes: dict[str, Outcome] = {
            "delivered": DELIVERED,
            "retry": Retry(delay=HOUR, error="r"),
            "deferred": Retry(delay=HOUR, error="u", counted=False),
            "dead": Dead(error="d"),
            "blocked": Dead(error="b", block=True),
        }
        await harness.commit(*(event(name) for name in outcomes))
        decisions = [Decision(m, outcomes[m.event_id], "orders") for m in await owner.ready()]
        settled = await harness.store.writes.settle(owner.epochs, decisions)
        assert settled.count == 5
        found = {name: (await find_event(harness.store, name))[0] for name in outcomes}
        states = {name: (row.status, row.attempts, row.retry_count) for name, row in found.items()}
        assert states == {
            "delivered": ("PUBLISHED", 0, 0),
            "retry": ("PENDING", 1, 1),
            "deferred": ("PENDING", 0, 1),
            "dead": ("FAILED", 1, 1),
            "blocked": ("FAILED", 1, 1),
        }
        assert await owner.ready() == []

    async def test_an_empty_settlement_is_accepted(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        assert (await owner.settle(DELIVERED)).count == 0

    async def test_large_batches_settle_at_once(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(f"{n}", f"key {n % 40}") for n in range(1200)))
        messages = await owner.ready(limit=2000, quota=2000)
        assert len(messages) == 1200
        assert (await owner.settle(DELIVERED, *messages)).count == 1200
        assert await owner.ready() == []

    async def test_a_settlement_changes_only_its_messages(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b", "c"))
        a, b, c = await owner.ready()
        await owner.settle(DELIVERED, b)
        assert await owner.ready() == [a, c]
