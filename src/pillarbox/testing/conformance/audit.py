"""Audit: every change by an operator is audited, and the newest entry is listed first."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from pillarbox.admin.audit import AuditEntry, AuditFilter
from pillarbox.admin.requests import Action
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.core.store import Retention
from pillarbox.testing.conformance.events import HOUR, at, digest, event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.conformance.listings import dead_letters


async def entries(harness: StoreHarness, *, limit: int = 100, **wanted: Any) -> list[AuditEntry]:
    """Return all matching entries, read page by page."""
    found: list[AuditEntry] = []
    before: int | None = None
    while True:
        page = await harness.store.admin.audit.list(AuditFilter(**wanted), limit=limit, before=before)
        assert len(page.entries) <= limit
        found += page.entries
        if (before := page.before) is None:
            return found


async def make_dead_letters(harness: StoreHarness, *event_ids: str) -> list[int]:
    """Dead-dead_letter these events at destination `x`; return the numbers of the dead letters, in that order."""
    owner = await Owner.of(harness.store)
    for event_id in event_ids:
        await harness.commit(event(event_id, "k"))
        await owner.settle(Dead(error="no"), *await owner.ready(), to="x")
    await harness.store.lanes.release(owner.relay)
    return [dead_letter.id for dead_letter in reversed(await dead_letters(harness.store))]


class AuditConformance:
    async def test_an_empty_audit_has_one_empty_page(self, harness: StoreHarness) -> None:
        assert await harness.store.admin.audit.list() == ([], None)

    async def test_a_retry_and_a_discard_are_audited_with_the_dead_letter(self, harness: StoreHarness) -> None:
        a, b = await make_dead_letters(harness, "a", "b")
        await harness.store.admin.dead_letters.retry([a], by="ada")
        await harness.store.admin.dead_letters.discard([b], by="bob")
        newest, oldest = await entries(harness)
        assert (oldest.who, oldest.what, oldest.subject, oldest.count) == ("ada", "retry", "a", 1)
        assert dict(oldest.detail) == {"destination": "x", "dead_letter_id": a}
        assert (newest.who, newest.what, newest.subject, newest.count) == ("bob", "discard", "b", 1)
        assert dict(newest.detail) == {"destination": "x", "dead_letter_id": b}
        assert at(-HOUR) < oldest.at <= newest.at < at(HOUR)

    async def test_the_audit_names_the_changed_fields_without_their_content(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", payload=b"secret old", headers={"kept": "1", "gone": "2", "other": "3"}))
        await owner.settle(Dead(error="no"), *await owner.ready(), to="x")
        [dead_letter] = await dead_letters(harness.store)
        headers = {"kept": "1", "other": "secret", "new": "secret"}
        await harness.store.admin.dead_letters.edit(dead_letter.id, payload=b"secret new", headers=headers, by="ada")
        [entry] = await entries(harness)
        assert (entry.who, entry.what, entry.subject, entry.count) == ("ada", "edit", "a", 1)
        assert dict(entry.detail) == {
            "destination": "x",
            "dead_letter_id": dead_letter.id,
            "payload": {
                "old": {"sha256": digest(b"secret old"), "bytes": 10},
                "new": {"sha256": digest(b"secret new"), "bytes": 10},
            },
            "headers": {"set": ["new", "other"], "removed": ["gone"]},
        }
        assert "secret" not in entry.detail_json

    async def test_an_edit_is_audited_once_and_only_if_it_changed_something(self, harness: StoreHarness) -> None:
        a, b = await make_dead_letters(harness, "a", "b")
        await harness.commit(event("b", "k", destination="x"))
        assert await harness.store.admin.dead_letters.edit(a, payload=b"1", by="ada")
        assert not await harness.store.admin.dead_letters.edit(a, payload=b"2", by="ada")
        assert not await harness.store.admin.dead_letters.edit(b, payload=b"new", by="ada")
        assert [(entry.what, entry.subject) for entry in await entries(harness)] == [("edit", "a")]

    async def test_requests_for_several_events_are_audited_one_by_one(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        names = ["plain", "it's", '"quoted"', "\\", "é", "[1, 2]", "null"]
        await harness.commit(*(event(name, destination="x,y") for name in names))
        await harness.store.admin.requests.add("reschedule", [(name, "x,y") for name in names], delay=HOUR, by="op")
        assert await owner.execute_requests() == len(names)
        assert {(entry.who, entry.what, entry.subject) for entry in await entries(harness)} == {
            ("op", "reschedule", name) for name in names
        }

    @pytest.mark.parametrize("action", get_args(Action))
    async def test_a_request_for_a_delivered_event_is_not_audited(self, harness: StoreHarness, action: Action) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("delivered", "k"), event("rejected", "j"))
        delivered, rejected = await owner.ready()
        await harness.store.admin.requests.add(action, [("delivered", ""), ("rejected", "")], delay=HOUR, by="ada")
        await owner.settle(DELIVERED, delivered)
        await owner.settle(Retry(delay=HOUR, error="no"), rejected)
        assert await owner.execute_requests() == 2
        assert [entry.subject for entry in await entries(harness)] == ["rejected"]

    async def test_an_action_without_effect_is_not_audited(self, harness: StoreHarness) -> None:
        [a] = await make_dead_letters(harness, "a")
        assert await harness.store.admin.dead_letters.retry([a + 1000], by="ada") == 0
        assert await harness.store.admin.dead_letters.discard([a + 1000], by="ada") == 0
        assert await entries(harness) == []

    async def test_an_override_of_a_destination_is_audited(self, harness: StoreHarness) -> None:
        await harness.store.admin.requests.override("orders", paused=True, by="ada")
        [entry] = await entries(harness)
        assert (entry.who, entry.what, entry.subject) == ("ada", "override", "orders")
        assert dict(entry.detail) == {"paused": True}

    async def test_a_request_is_audited_when_it_was_executed(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        await owner.settle(Retry(delay=HOUR, error="no"), *await owner.ready(), to="x")
        await harness.store.admin.requests.add("retry", [("a", "x")], by="ada")
        await harness.store.admin.requests.add("discard", [("never there", "")], by="ada")
        assert await entries(harness) == []
        await owner.execute_requests()
        [entry] = await entries(harness)
        assert (entry.who, entry.what, entry.subject) == ("ada", "retry", "a")

    @pytest.mark.parametrize(
        ("action", "more"),
        [("retry", {}), ("discard", {}), ("dead_letter", {}), ("reschedule", {"delay": HOUR})],
        ids=str,
    )
    async def test_the_audit_links_an_executed_request(
        self, harness: StoreHarness, action: Action, more: dict[str, Any]
    ) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", destination="x"))
        [request] = await harness.store.admin.requests.add(action, [("a", "x")], delay=more.get("delay", 0), by="ada")
        await owner.execute_requests()
        [entry] = await entries(harness)
        assert (entry.who, entry.what, entry.subject, entry.count) == ("ada", action, "a", 1)
        assert dict(entry.detail) == {"destination": "x", "request_id": request, **more}

    @pytest.mark.parametrize("what", ["retry", "discard"])
    async def test_a_bulk_action_on_dead_letters_is_one_entry_with_a_growing_count(
        self, harness: StoreHarness, what: str
    ) -> None:
        admin = harness.store.admin
        a, b, c = await make_dead_letters(harness, "a", "b", "c")
        do = admin.dead_letters.retry if what == "retry" else admin.dead_letters.discard
        bulk_action = await admin.audit.add(what, "type t", count=0, detail={"remaining": 4}, by="ada")
        assert await do([a, b], bulk_action=bulk_action) == 2
        [entry] = await entries(harness)
        assert (entry.id, entry.who, entry.what, entry.subject, entry.count) == (bulk_action, "ada", what, "type t", 2)
        assert dict(entry.detail) == {"remaining": 2}
        assert await do([c, c + 1000], bulk_action=bulk_action) == 1
        [entry] = await entries(harness)
        assert (entry.count, dict(entry.detail)) == (3, {"remaining": 1})

    async def test_a_bulk_request_is_one_entry_whose_count_grows_with_execution(self, harness: StoreHarness) -> None:
        admin = harness.store.admin
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"), event("b"), event("c"))
        first = await admin.audit.add("discard", "type t", count=0, detail={"remaining": 3}, by="ada")
        second = await admin.audit.add("reschedule", "key k", count=0, detail={"remaining": 1, "delay": 1}, by="bob")
        await admin.requests.add("discard", [("a", ""), ("b", ""), ("never there", "")], bulk_action=first)
        await admin.requests.add("reschedule", [("c", "")], delay=1, bulk_action=second)
        assert [entry.count for entry in await entries(harness)] == [0, 0]
        while await owner.execute_requests():
            pass
        newest, oldest = await entries(harness)
        assert (newest.id, newest.who, newest.count) == (second, "bob", 1)
        assert dict(newest.detail) == {"remaining": 0, "delay": 1}
        assert (oldest.id, oldest.who, oldest.count, dict(oldest.detail)) == (first, "ada", 2, {"remaining": 1})

    async def test_a_bulk_action_continues_although_its_entry_was_pruned(self, harness: StoreHarness) -> None:
        [a] = await make_dead_letters(harness, "a")
        owner = await Owner.of(harness.store)
        await harness.commit(event("b"))
        bulk_action = await harness.store.admin.audit.add("discard", count=0, detail={"remaining": 2}, by="ada")
        await harness.store.admin.requests.add("discard", [("b", "")], bulk_action=bulk_action)
        await harness.store.pruning.prune(Retention(audit=0))
        assert await harness.store.admin.dead_letters.discard([a], bulk_action=bulk_action) == 1
        assert await owner.execute_requests() == 1
        assert await entries(harness) == []

    async def test_pages_go_from_the_newest_to_the_oldest(self, harness: StoreHarness) -> None:
        for name in ("a", "b", "c"):
            await harness.store.admin.requests.override(name, paused=True, by="ada")
        for limit in (1, 2, 100):
            assert [entry.subject for entry in await entries(harness, limit=limit)] == ["c", "b", "a"]

    async def test_the_audit_can_be_filtered(self, harness: StoreHarness) -> None:
        cases: list[tuple[dict[str, Any], list[str]]] = [
            ({"who": "ada"}, ["orders", "a"]),
            ({"what": "discard"}, ["b"]),
            ({"who": "ada", "what": "override"}, ["orders"]),
            ({"who": "unknown"}, []),
            ({"since": at(-HOUR)}, ["orders", "b", "a"]),
            ({"since": at(HOUR)}, []),
        ]
        a, b = await make_dead_letters(harness, "a", "b")
        await harness.store.admin.dead_letters.retry([a], by="ada")
        await harness.store.admin.dead_letters.discard([b], by="bob")
        await harness.store.admin.requests.override("orders", paused=True, by="ada")
        for limit in (1, 100):
            for wanted, found in cases:
                assert [entry.subject for entry in await entries(harness, limit=limit, **wanted)] == found, wanted

    async def test_old_audit_entries_are_pruned(self, harness: StoreHarness) -> None:
        await harness.store.admin.requests.override("orders", paused=True, by="ada")
        await harness.store.pruning.prune(Retention(audit=HOUR))
        assert len(await entries(harness)) == 1
        await harness.store.pruning.prune(Retention(audit=0))
        assert await entries(harness) == []
