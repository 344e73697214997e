"""Dead letters keep all fields and wait for an operator, or block their key if the policy says so."""

from __future__ import annotations

from pillarbox.core.outcome import Dead, Retry
from pillarbox.testing.conformance.capability import needing
from pillarbox.testing.conformance.events import event, keyed_events
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner, ids
from pillarbox.testing.conformance.listings import dead_letters, find_event


async def _dead_letter(harness: StoreHarness, owner: Owner, *event_ids: str, key: str | None = None) -> None:
    for event_id in event_ids:
        await harness.commit(event(event_id, key))
        [message] = [m for m in await owner.ready() if m.event_id == event_id]
        await owner.settle(Dead(error=f"{event_id} failed"), message)


class DeadLetterConformance:
    async def test_a_dead_letter_keeps_all_fields(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k", payload=b"\x00\xff"))
        await owner.settle(Retry(delay=0, error="first"), *await owner.ready(), to="orders")
        await owner.settle(Dead(error="last"), *await owner.due())
        assert await owner.due() == []
        [dead_letter] = await dead_letters(harness.store)
        assert (dead_letter.event_id, dead_letter.destination, dead_letter.event_type, dead_letter.key) == (
            "a",
            "orders",
            "thing.happened",
            "k",
        )
        assert (bytes(dead_letter.payload), dead_letter.error, dead_letter.attempts) == (b"\x00\xff", "last", 2)
        assert dead_letter.first_failed_at is not None
        assert dead_letter.first_failed_at <= dead_letter.dead_lettered_at

    async def test_a_dead_letter_is_shown_as_failed(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await _dead_letter(harness, owner, "a")
        [row] = await find_event(harness.store, "a")
        assert (row.status, row.attempts, row.last_error) == ("FAILED", 1, "a failed")
        assert (row.next_retry_at, row.published_at) == (None, None)

    async def test_a_message_that_was_never_sent_has_no_attempts(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        await owner.settle(Dead(error="no route", counted=False), *await owner.ready())
        [dead_letter] = await dead_letters(harness.store)
        assert dead_letter.attempts == 0

    async def test_an_error_with_control_characters_does_not_prevent_a_dead_letter(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        settled = await owner.settle(Dead(error="no\x00thing\x1b\udc80"), *await owner.ready())
        assert settled.count == 1
        [dead_letter] = await dead_letters(harness.store)
        assert dead_letter.error.startswith("no")

    async def test_the_key_continues_after_a_dead_letter(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b"))
        a, b = await owner.ready()
        await owner.settle(Dead(error="no"), a)
        assert await owner.ready() == [b]

    async def test_a_blocked_message_stays_first_of_its_key(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", "a", "b"), event("c", "other"))
        a, *_ = await owner.ready()
        await owner.settle(Dead(error="no", block=True), a)
        assert await owner.due() == []
        assert await owner.orphaned_queues() == []
        assert {m.event_id: m.must_wait for m in await owner.ready()} == {"b": True, "c": False}
        [row] = await find_event(harness.store, "a")
        assert (row.status, row.attempts, row.last_error, row.next_retry_at) == ("FAILED", 1, "no", None)
        assert await dead_letters(harness.store) == []

    async def test_a_retried_dead_letter_goes_to_the_end_of_its_key(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await _dead_letter(harness, owner, "a", key="k")
        await harness.commit(*keyed_events("k", "b", "c"))
        [dead_letter] = await dead_letters(harness.store)
        assert await harness.store.admin.dead_letters.retry([dead_letter.id], by="op") == 1
        assert await dead_letters(harness.store) == []
        b, c, a = await owner.ready()
        assert ids([b, c, a]) == ["b", "c", "a"]
        assert a.id > c.id
        assert (a.attempts, a.payload, a.key, a.must_wait) == (0, b"a", "k", False)
        [row] = await find_event(harness.store, "a")
        assert (row.status, row.attempts) == ("PENDING", 0)

    async def test_a_retried_dead_letter_keeps_its_destination_headers_and_key(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", aggregate_type="T", aggregate_id="1", headers={"h": "é"}))
        [before] = await owner.ready()
        await owner.settle(Dead(error="no"), before, to="orders")
        [dead_letter] = await dead_letters(harness.store)
        await harness.store.admin.dead_letters.retry([dead_letter.id])
        [after] = await owner.ready()
        # One send, which distinguishes it from an event that was just recorded.
        assert after._replace(id=before.id, destination="", recorded_at=before.recorded_at, deferrals=0) == before
        assert after.deferrals == 1
        assert after.destination == "orders"

    async def test_a_dead_letter_whose_event_is_pending_cannot_be_retried(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await _dead_letter(harness, owner, "a", "b")
        await harness.commit(event("a", payload=b"new"))
        found = await dead_letters(harness.store)
        assert await harness.store.admin.dead_letters.retry([dead_letter.id for dead_letter in found]) == 1
        assert [dead_letter.event_id for dead_letter in await dead_letters(harness.store)] == ["a"]
        assert sorted(bytes(m.payload) for m in await owner.ready()) == [b"b", b"new"]

    async def test_of_two_dead_letters_of_one_event_one_is_retried(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await _dead_letter(harness, owner, "a", "a")
        found = await dead_letters(harness.store)
        assert await harness.store.admin.dead_letters.retry([dead_letter.id for dead_letter in found]) == 1
        assert len(await dead_letters(harness.store)) == 1
        assert ids(await owner.ready()) == ["a"]

    @needing("listings")
    async def test_retrying_a_missing_dead_letter_counts_nothing(self, harness: StoreHarness) -> None:
        assert await harness.store.admin.dead_letters.retry([1, 2, 3]) == 0
        assert await harness.store.admin.dead_letters.retry([]) == 0
        assert await harness.store.admin.dead_letters.discard([1]) == 0

    async def test_a_discarded_dead_letter_is_deleted(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await _dead_letter(harness, owner, "a", "b")
        _, a = await dead_letters(harness.store)
        assert await harness.store.admin.dead_letters.discard([a.id], by="op") == 1
        assert [dead_letter.event_id for dead_letter in await dead_letters(harness.store)] == ["b"]
        assert await find_event(harness.store, "a") == []

    async def test_dead_letters_are_paged_newest_first(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await _dead_letter(harness, owner, "a", "b", "c", "d", "e")
        for limit in (1, 2, 10):
            found: list[str] = []
            before = None
            while page := await dead_letters(harness.store, limit=limit, before=before):
                assert len(page) <= limit
                found += [dead_letter.event_id for dead_letter in page]
                before = page[-1].id
            assert found == ["e", "d", "c", "b", "a"]
