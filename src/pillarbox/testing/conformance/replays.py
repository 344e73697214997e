"""Replays: delivered events are sent again in order, exactly once, and are marked as copies."""

from __future__ import annotations

from typing import Any

import pytest

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.listing import EventFilter
from pillarbox.admin.replay import DeliveryPosition, Progress, Replay, ReplayBatch
from pillarbox.core.event import REPLAY_OF, Event
from pillarbox.core.message import Message
from pillarbox.core.outcome import DELIVERED, Dead, Resolved
from pillarbox.core.store import PriorSend
from pillarbox.testing.conformance.audit import entries
from pillarbox.testing.conformance.events import HOUR, at, event, keyed_events
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.conformance.listings import find_event

KEPT = (
    "event_type",
    "aggregate_type",
    "aggregate_id",
    "key",
    "destination",
    "content_type",
    "schema_version",
    "correlation_id",
    "causation_id",
    "trace_id",
    "occurred_at",
)


async def delivered(harness: StoreHarness, *events: Event, to: str = "x") -> Owner:
    """Deliver all of them, one by one."""
    owner = await Owner.of(harness.store)
    for one in events:
        await harness.commit(one)
        await owner.settle(DELIVERED, *await owner.ready(), to=to)
    return owner


async def replayed(store: AdminStore, plan: Replay, *, batch: int = 100, by: str = "") -> Progress:
    """Run the whole replay in chunks; check that the count was right."""
    expected = await _counted(store, plan)
    progress = await store.admin.replays.begin(plan, by=by, expected=expected)
    while not progress.done:
        progress = await _replay_batch(store, progress, batch)
    assert progress.copied == progress.expected == expected
    return progress


async def _counted(store: AdminStore, plan: Replay, *, enough: int = 100, scan: int = 2) -> int:
    """Count the matching events, step by step."""
    found, after = await store.admin.replays.count(plan, enough=enough, scan=scan)
    while after is not None:
        more, after = await store.admin.replays.count(plan, enough=enough - found, scan=scan, after=after)
        found += more
    return found


async def _replay_batch(store: AdminStore, progress: Progress, batch: int) -> Progress:
    chosen = await _chosen(store, progress, batch)
    after, done = chosen.after or progress.after, chosen.after is None
    moved = await store.admin.replays.copy(progress, chosen.rows, after=after, done=done)
    assert moved is not None
    return moved


async def _clock_moved(store: AdminStore, progress: Progress) -> None:
    """Wait until the database's clock is past the start of that replay."""
    for _ in range(100_000):
        if (await store.admin.replays.begin(progress.plan)).began > progress.began:
            return
    raise AssertionError("the database's clock does not advance")


async def _chosen(store: AdminStore, progress: Progress, limit: int) -> ReplayBatch:
    return await store.admin.replays.chosen(progress.plan, limit=limit, after=progress.after, began=progress.began)


def of(message: Message) -> str:
    """Return the id of the original of a copy."""
    return message.headers[REPLAY_OF]


class ReplayConformance:
    async def test_a_copy_is_a_new_event_that_names_its_original(self, harness: StoreHarness) -> None:
        original = event(
            "a",
            payload=b"\x00\xff",
            aggregate_type="ORDER",
            aggregate_id="7",
            content_type="x/y",
            headers={"tenant": "acme"},
            schema_version=3,
            correlation_id="c",
            causation_id="d",
            trace_id="t",
            occurred_at=at(-HOUR),
        )
        owner = await delivered(harness, original)
        [row] = (await harness.store.admin.events.show("a")).events
        progress = await replayed(harness.store, Replay())
        [copy] = await owner.ready()
        assert (progress.copied, copy.event_id) == (1, progress.copy_id("a"))
        assert copy.event_id != "a"
        assert dict(copy.headers) == {"tenant": "acme", REPLAY_OF: "a"}
        assert [getattr(copy, name) for name in KEPT] == [getattr(row, name) for name in KEPT]
        assert bytes(copy.payload) == b"\x00\xff"
        assert copy.recorded_at >= row.recorded_at
        assert (copy.attempts, copy.deferrals, copy.held, copy.available_at) == (0, 0, None, None)

    async def test_the_original_stays_where_it_is(self, harness: StoreHarness) -> None:
        await delivered(harness, event("a"))
        await replayed(harness.store, Replay())
        [row] = await find_event(harness.store, "a")
        assert row.status == "PUBLISHED"

    @pytest.mark.parametrize("batch", [1, 2, 100])
    async def test_copies_are_created_in_delivery_order_for_every_chunk_size(
        self, harness: StoreHarness, batch: int
    ) -> None:
        owner = await delivered(harness, *keyed_events("k", "c", "a", "b"), event("without"), *keyed_events("l", "d"))
        await replayed(harness.store, Replay(), batch=batch)
        assert [of(copy) for copy in sorted(await owner.ready())] == ["c", "a", "b", "without", "d"]

    async def test_messages_settled_together_keep_their_sequence(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*keyed_events("k", *"edcba"))
        await owner.settle(DELIVERED, *reversed(await owner.ready()), to="x")
        await replayed(harness.store, Replay(), batch=2)
        assert [of(copy) for copy in sorted(await owner.ready())] == [*"edcba"]

    async def test_copies_are_last_in_their_key(self, harness: StoreHarness) -> None:
        owner = await delivered(harness, event("a", "k"))
        await harness.commit(event("b", "k"))
        await replayed(harness.store, Replay())
        first, second = sorted(await owner.ready())
        assert (first.event_id, of(second)) == ("b", "a")
        assert (first.key, first.lane) == (second.key, second.lane)

    @pytest.mark.parametrize(
        ("wanted", "more", "found"),
        [
            ({"event_type": "thing.happened"}, {}, ["a", "b", "c"]),
            ({"event_type": "another"}, {}, []),
            ({"key": "k"}, {}, ["a", "b"]),
            ({"key": "k", "event_type": "another"}, {}, []),
            ({"destination": "x"}, {}, ["a", "b", "c"]),
            ({"destination": "y"}, {}, []),
            ({"since": at(-HOUR)}, {}, ["a", "b", "c"]),
            ({"since": at(HOUR)}, {}, []),
            ({}, {"until": at(HOUR)}, ["a", "b", "c"]),
            ({}, {"until": at(-HOUR)}, []),
            ({}, {"event_ids": ("c", "a", "never there")}, ["a", "c"]),
            ({"key": "k"}, {"event_ids": ("c", "a")}, ["a"]),
        ],
        ids=str,
    )
    async def test_a_replay_can_be_filtered(
        self, harness: StoreHarness, wanted: dict[str, Any], more: dict[str, Any], found: list[str]
    ) -> None:
        owner = await delivered(harness, *keyed_events("k", "a", "b"), event("c"))
        progress = await replayed(harness.store, Replay(wanted=EventFilter(**wanted), **more), batch=2)
        assert [of(copy) for copy in sorted(await owner.ready())] == found
        assert progress.copied == len(found)

    async def test_pending_and_dead_events_are_not_replayed(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("dead"), event("waits"))
        dead, _ = await owner.ready()
        await owner.settle(Dead(error="no"), dead, to="x")
        assert (await replayed(harness.store, Replay())).copied == 0

    async def test_copies_for_several_destinations_share_their_id(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        [message] = await owner.ready()
        await owner.split(message, "x", "y")
        await owner.settle(DELIVERED, *await owner.ready())
        progress = await replayed(harness.store, Replay())
        copies = await owner.ready()
        assert {copy.identity for copy in copies} == {(progress.copy_id("a"), "x"), (progress.copy_id("a"), "y")}

    @pytest.mark.parametrize("batch", [1, 100])
    async def test_an_event_is_replayed_once_to_one_destination(self, harness: StoreHarness, batch: int) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        [message] = await owner.ready()
        await owner.split(message, "x", "y")
        for copy in await owner.ready():
            await owner.settle(DELIVERED, copy)
        progress = await harness.store.admin.replays.begin(Replay(to="z"))
        sent: list[Message] = []
        while not progress.done:
            progress = await _replay_batch(harness.store, progress, batch)
            sent += (ready := await owner.ready())
            await owner.settle(DELIVERED, *ready)
        assert [copy.identity for copy in sent] == [(progress.copy_id("a"), "z")]

    async def test_a_replay_can_go_to_another_destination(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        [message] = await owner.ready()
        await owner.split(message, "x", "y")
        await owner.settle(DELIVERED, *await owner.ready())
        assert (await replayed(harness.store, Replay(wanted=EventFilter(destination="y"), to="z"))).copied == 1
        assert [copy.destination for copy in await owner.ready()] == ["z"]

    async def test_an_event_that_was_delivered_twice_is_replayed_once(self, harness: StoreHarness) -> None:
        owner = await delivered(harness, event("a"), event("a"))
        await replayed(harness.store, Replay(), batch=1)
        assert len(await owner.ready()) == 1

    async def test_a_copy_is_not_replayed_unless_it_is_named(self, harness: StoreHarness) -> None:
        owner = await delivered(harness, event("a"))
        first = await replayed(harness.store, Replay())
        await owner.settle(DELIVERED, *await owner.ready())
        second = await replayed(harness.store, Replay())
        [copy] = await owner.ready()
        assert (second.copied, copy.event_id, of(copy)) == (1, second.copy_id("a"), "a")
        await owner.settle(DELIVERED, copy)
        named = first.copy_id("a")
        third = await replayed(harness.store, Replay(event_ids=(named,)))
        [copy] = await owner.ready()
        assert (copy.event_id, of(copy)) == (third.copy_id(named), "a")

    async def test_events_delivered_during_a_replay_are_not_replayed(self, harness: StoreHarness) -> None:
        owner = await delivered(harness, event("a"), event("b"))
        progress = await harness.store.admin.replays.begin(Replay(event_ids=("a", "b", "later")))
        await _clock_moved(harness.store, progress)
        await harness.commit(event("later"))
        await owner.settle(DELIVERED, *await owner.ready())
        while not progress.done:
            progress = await _replay_batch(harness.store, progress, 1)
        assert [of(copy) for copy in sorted(await owner.ready())] == ["a", "b"]

    async def test_a_resumed_replay_copies_every_event_exactly_once(self, harness: StoreHarness) -> None:
        owner = await delivered(harness, *keyed_events("k", "a", "b", "c"))
        progress = await _replay_batch(harness.store, await harness.store.admin.replays.begin(Replay()), 1)
        sent = await owner.ready()
        await owner.settle(DELIVERED, *sent)
        other = await harness.second_store()
        found = await other.admin.replays.find(progress.number)
        assert found is not None
        assert found == progress
        while not found.done:
            found = await _replay_batch(other, found, 1)
        assert [of(copy) for copy in (*sent, *sorted(await owner.ready()))] == ["a", "b", "c"]
        assert found.copied == 3

    async def test_of_two_processes_that_resume_a_replay_one_continues(self, harness: StoreHarness) -> None:
        owner = await delivered(harness, *keyed_events("k", "a", "b"))
        progress = await harness.store.admin.replays.begin(Replay())
        chosen = await _chosen(harness.store, progress, 100)
        copy = harness.store.admin.replays.copy
        assert await copy(progress, chosen.rows, after=chosen.rows[-1].position, done=True) is not None
        await owner.settle(DELIVERED, *await owner.ready())
        other = await harness.second_store()
        assert await other.admin.replays.copy(progress, chosen.rows, after=chosen.rows[-1].position, done=True) is None
        assert await owner.ready() == []

    async def test_a_replay_is_found_by_its_number_with_its_parameters(self, harness: StoreHarness) -> None:
        plan = Replay(
            wanted=EventFilter(event_type="t", key="k", destination="x", since=at(-HOUR)),
            until=at(HOUR),
            event_ids=("a", "b"),
            to="y",
            rate=2.5,
            most=7,
        )
        progress = await harness.store.admin.replays.begin(plan, by="ada", expected=12)
        assert await harness.store.admin.replays.find(progress.number) == progress
        assert (progress.plan, progress.copied, progress.done, progress.expected) == (plan, 0, False, 12)
        await harness.store.admin.requests.override("x", paused=True)
        newest, _ = await entries(harness)
        assert await harness.store.admin.replays.find(newest.id) is None
        assert await harness.store.admin.replays.find(newest.id + 1000) is None

    async def test_the_audit_has_one_entry_with_the_count(self, harness: StoreHarness) -> None:
        await delivered(harness, event("a"), event("b"), event("c"))
        progress = await replayed(harness.store, Replay(to="y"), batch=1, by="ada")
        [entry] = await entries(harness)
        assert (entry.id, entry.who, entry.what, entry.subject) == (progress.number, "ada", "replay", "y")
        assert (entry.count, entry.detail["done"], entry.detail["asked"]) == (3, True, {"to": "y"})

    async def test_events_pruned_from_the_history_are_skipped(self, harness: StoreHarness) -> None:
        owner = await delivered(harness, event("a"), event("b"))
        progress = await harness.store.admin.replays.begin(Replay())
        chosen = await _chosen(harness.store, progress, 100)
        old = await harness.store.admin.archive.read("history", older=0, limit=1)
        await harness.store.admin.archive.drop("history", old)
        moved = await harness.store.admin.replays.copy(progress, chosen.rows, after=chosen.rows[-1].position, done=True)
        assert moved is not None
        assert moved.copied == 1
        assert [of(copy) for copy in await owner.ready()] == ["b"]

    async def test_two_replays_of_one_event_have_two_ids(self, harness: StoreHarness) -> None:
        owner = await delivered(harness, event("a"))
        first, second = [await replayed(harness.store, Replay()) for _ in range(2)]
        assert {copy.event_id for copy in await owner.ready()} == {first.copy_id("a"), second.copy_id("a")}
        assert first.copy_id("a") != second.copy_id("a")

    async def test_a_copy_is_sent_whatever_the_ledger_has(self, harness: StoreHarness) -> None:
        store = await harness.second_store(ledger=True)
        assert store.ledger is not None
        owner = await Owner.of(store)
        await harness.commit(event("a"))
        await owner.settle(DELIVERED, *await owner.ready(), to="x")
        await replayed(store, Replay())
        [copy] = await owner.ready()
        assert await store.ledger.begin([Resolved(copy, "x")]) == [PriorSend.NOT_SENT]

    @pytest.mark.parametrize("scan", [1, 100])
    @pytest.mark.parametrize(("enough", "found"), [(4, 4), (6, 5)])
    async def test_matching_events_are_counted_up_to_a_limit(
        self, harness: StoreHarness, scan: int, enough: int, found: int
    ) -> None:
        owner = await delivered(harness, event("a"), *keyed_events("k", "b", "c"))
        await harness.commit(event("d"))
        [message] = await owner.ready()
        await owner.split(message, "x", "y")
        await owner.settle(DELIVERED, *await owner.ready())
        assert await _counted(harness.store, Replay(), enough=enough, scan=scan) == found

    async def test_counting_changes_nothing(self, harness: StoreHarness) -> None:
        owner = await delivered(harness, event("a"), event("b"))
        chosen = await harness.store.admin.replays.chosen(Replay(), limit=1, after=Replay().start)
        assert [row.event_id for row in chosen.rows] == ["a"]
        assert chosen.after == DeliveryPosition(*chosen.rows[0][:3])
        assert await _counted(harness.store, Replay()) == 2
        assert (await owner.ready(), await entries(harness)) == ([], [])
