"""Edit and retry: a dead letter is sent again with another content, and the audit names the edited fields."""

from __future__ import annotations

from pillarbox.admin.dead_letters import AMENDED
from pillarbox.core.outcome import DELIVERED, Dead, Resolved
from pillarbox.core.store import PriorSend
from pillarbox.testing.conformance.audit import make_dead_letters
from pillarbox.testing.conformance.capability import needing
from pillarbox.testing.conformance.events import digest, event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner, ids
from pillarbox.testing.conformance.listings import dead_letters


@needing("listings")
class EditConformance:
    async def test_an_edited_dead_letter_is_pending_with_its_new_content_and_no_attempts(
        self, harness: StoreHarness
    ) -> None:
        [dead_letter] = await make_dead_letters(harness, "a")
        edit = harness.store.admin.dead_letters.edit
        assert await edit(dead_letter, payload=b"\x00new", headers={"tenant": "acme"}, by="ada")
        owner = await Owner.of(harness.store)
        [message] = await owner.ready()
        assert (message.event_id, message.destination, message.key) == ("a", "x", "k")
        # One send without an attempt: an operator wants it sent, whatever the history has.
        assert (bytes(message.payload), message.attempts, message.deferrals) == (b"\x00new", 0, 1)
        assert dict(message.headers) == {"tenant": "acme", AMENDED: digest(b"a")}
        assert await dead_letters(harness.store) == []

    async def test_an_edited_dead_letter_goes_to_the_end_of_its_key(self, harness: StoreHarness) -> None:
        [dead_letter] = await make_dead_letters(harness, "a")
        await harness.commit(event("b", "k"))
        await harness.store.admin.dead_letters.edit(dead_letter, payload=b"new")
        owner = await Owner.of(harness.store)
        assert ids(await owner.ready()) == ["b", "a"]

    async def test_fields_that_are_not_edited_stay_unchanged(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", payload=b"old", headers={"tenant": "acme"}))
        await owner.settle(Dead(error="no"), *await owner.ready(), to="x")
        [dead_letter] = await dead_letters(harness.store)
        await harness.store.admin.dead_letters.edit(dead_letter.id, payload=b"new")
        [message] = await owner.ready()
        assert dict(message.headers) == {"tenant": "acme", AMENDED: digest(b"old")}
        await owner.settle(Dead(error="no"), message)
        [dead_letter] = await dead_letters(harness.store)
        await harness.store.admin.dead_letters.edit(dead_letter.id, headers={})
        [message] = await owner.ready()
        assert bytes(message.payload) == b"new"
        assert dict(message.headers) == {AMENDED: digest(b"new")}

    async def test_a_deleted_dead_letter_cannot_be_edited(self, harness: StoreHarness) -> None:
        [dead_letter] = await make_dead_letters(harness, "a")
        assert await harness.store.admin.dead_letters.edit(dead_letter, payload=b"1")
        assert not await harness.store.admin.dead_letters.edit(dead_letter, payload=b"2")
        owner = await Owner.of(harness.store)
        assert [bytes(message.payload) for message in await owner.ready()] == [b"1"]

    async def test_a_dead_letter_whose_event_is_pending_cannot_be_edited(self, harness: StoreHarness) -> None:
        [dead_letter] = await make_dead_letters(harness, "a")
        await harness.commit(event("a", "k", destination="x"))
        assert not await harness.store.admin.dead_letters.edit(dead_letter, payload=b"new", by="ada")
        [still] = await dead_letters(harness.store)
        assert (still.id, bytes(still.payload)) == (dead_letter, b"a")

    async def test_an_edited_dead_letter_is_sent_whatever_the_ledger_has(self, harness: StoreHarness) -> None:
        store = await harness.second_store(ledger=True)
        assert store.ledger is not None
        owner = await Owner.of(store)
        for outcome in (DELIVERED, Dead(error="no")):
            await harness.commit(event("a"))
            await owner.settle(outcome, *await owner.ready(), to="x")
        [dead_letter] = await dead_letters(store)
        await store.admin.dead_letters.edit(dead_letter.id, payload=b"new")
        [message] = await owner.ready()
        assert await store.ledger.begin([Resolved(message, "x")]) == [PriorSend.NOT_SENT]
