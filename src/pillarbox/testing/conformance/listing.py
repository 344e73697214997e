"""Listing: pages of events and dead letters, and the details of one event."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pillarbox.admin.dead_letters import DeadLetterFilter, ListedDeadLetter
from pillarbox.admin.listing import EventFilter, ListedEvent, Position
from pillarbox.admin.states import EventState, StateCount
from pillarbox.core.lane import InFlightMessage
from pillarbox.core.message import Held, Status
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.testing.conformance.capability import needing
from pillarbox.testing.conformance.events import HOUR, at, event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import LONG, Owner

LATER = Retry(delay=HOUR, error="no")
STATES = {
    EventState.READY: "ready",
    EventState.IN_FLIGHT: "in flight",
    EventState.RETRYING: "retry",
    EventState.DELAYED: "delayed",
    EventState.WAITING: "waiting",
    EventState.PARKED: "parked",
    EventState.BLOCKED: "blocked",
    EventState.PUBLISHED: "published",
    EventState.DEAD_LETTERED: "dead",
}
"""State → the id of the event in that state that `one_of_each` records."""
UNDELIVERED = ["ready", "in flight", "parked", "retry", "delayed", "waiting", "blocked"]
"""Its pending events, the newest first."""


async def listed(harness: StoreHarness, *, limit: int = 100, **wanted: Any) -> list[str]:
    """Return the ids of all matching events, read page by page."""
    return [row.event_id for row in await pages(harness, EventFilter(**wanted), limit=limit)]


async def pages(harness: StoreHarness, wanted: EventFilter, *, limit: int) -> list[ListedEvent]:
    found: list[ListedEvent] = []
    after: Position | None = None
    while True:
        page = await harness.store.admin.events.list(wanted, limit=limit, after=after)
        assert len(page.events) <= limit
        found += page.events
        if (after := page.after) is None:
            return found


async def list_dead_letters(harness: StoreHarness, *, limit: int = 100, **wanted: Any) -> list[ListedDeadLetter]:
    found: list[ListedDeadLetter] = []
    before: int | None = None
    while True:
        page = await harness.store.admin.dead_letters.list(DeadLetterFilter(**wanted), limit=limit, before=before)
        assert len(page.dead_letters) <= limit
        found += page.dead_letters
        if (before := page.before) is None:
            return found


async def one_of_each(harness: StoreHarness) -> Owner:
    """Record nine events one after another, each in another state."""
    owner = await Owner.of(harness.store)
    for name in ("published", "dead", "blocked", "waiting", "delayed", "retry", "parked", "in flight", "ready"):
        later = {"available_at": at(HOUR)} if name == "delayed" else {}
        await harness.commit(event(name, f"key of {name}", destination="x", **later))
    found = {message.event_id: message for message in await owner.ready()}
    await owner.settle(DELIVERED, found["published"])
    await owner.settle(Dead(error="rejected"), found["dead"])
    await owner.settle(Dead(error="stuck", block=True), found["blocked"])
    await owner.settle(LATER, found["retry"])
    await owner.hold(Held.PARKED, found["parked"])
    await owner.hold(Held.WAITING, found["waiting"])
    in_flight = [InFlightMessage(event_id="in flight", destination="x", seconds=3)]
    await harness.store.lanes.renew(owner.relay, lease=LONG, in_flight=in_flight)
    return owner


@needing("listings")
class EventListConformance:
    async def test_an_empty_outbox_has_one_empty_page(self, harness: StoreHarness) -> None:
        assert await harness.store.admin.events.list(EventFilter(), limit=10) == ([], None)

    async def test_pages_cover_all_tables_newest_first(self, harness: StoreHarness) -> None:
        await one_of_each(harness)
        for limit in (1, 2, 3, 100):
            assert await listed(harness, limit=limit) == [*UNDELIVERED, "dead", "published"]

    async def test_a_list_can_be_filtered(self, harness: StoreHarness) -> None:
        cases: list[tuple[dict[str, Any], list[str]]] = [
            ({"status": Status.PUBLISHED}, ["published"]),
            ({"status": Status.FAILED}, ["blocked", "dead"]),
            ({"status": Status.PROCESSING}, ["in flight"]),
            ({"status": Status.PENDING}, ["ready", "parked", "retry", "delayed", "waiting"]),
            *(({"state": state}, [event_id]) for state, event_id in STATES.items()),
            ({"state": EventState.BLOCKED, "status": Status.FAILED}, ["blocked"]),
            ({"state": EventState.BLOCKED, "status": Status.PENDING}, []),
            ({"state": EventState.DEAD_LETTERED, "undelivered": True}, []),
            ({"undelivered": True}, UNDELIVERED),
            ({"undelivered": True, "status": Status.FAILED}, ["blocked"]),
            ({"undelivered": True, "status": Status.PUBLISHED}, []),
            ({"key": "key of published"}, ["published"]),
            ({"key": "key of dead"}, ["dead"]),
            ({"key": "key of retry", "status": Status.PENDING}, ["retry"]),
            ({"key": "key of retry", "status": Status.FAILED}, []),
            ({"key": "unknown"}, []),
            ({"destination": "y"}, []),
            ({"error": "reject"}, ["dead"]),
            ({"error": "tuck"}, ["blocked"]),
            ({"error": "no", "status": Status.PENDING}, ["retry"]),
            ({"error": "%"}, []),
            ({"event_type": "another"}, []),
            ({"event_type": "thing.happened", "destination": "x", "status": Status.FAILED}, ["blocked", "dead"]),
        ]
        await one_of_each(harness)
        for limit in (1, 2, 100):
            for wanted, found in cases:
                assert await listed(harness, limit=limit, **wanted) == found, wanted

    async def test_a_search_in_small_steps_finds_everything(
        self, harness: StoreHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cases: list[tuple[dict[str, Any], list[str]]] = [
            ({"status": Status.FAILED}, ["blocked", "dead"]),
            ({"status": Status.PENDING}, ["ready", "parked", "retry", "delayed", "waiting"]),
            ({"key": "key of published"}, ["published"]),
            ({"key": "key of dead"}, ["dead"]),
            ({"key": "key of retry", "destination": "x"}, ["retry"]),
            ({"destination": "y"}, []),
            ({"error": "rejected"}, ["dead"]),
        ]
        monkeypatch.setattr("pillarbox.admin.listing.ROWS_SCANNED", 1)
        await one_of_each(harness)
        for wanted, found in cases:
            assert await listed(harness, limit=1, **wanted) == found, wanted

    async def test_each_state_is_counted_and_listed(
        self, harness: StoreHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert set((await harness.store.admin.inspection.states()).values()) == {StateCount(0)}
        await one_of_each(harness)
        assert await harness.store.admin.inspection.states() == dict.fromkeys(EventState, StateCount(1))
        for state, event_id in STATES.items():
            [shown] = (await harness.store.admin.events.show(event_id)).events
            assert shown.state is state
        # A state with many messages is searched among all of them.
        monkeypatch.setattr("pillarbox.stores.admin.events.COUNTED", 0)
        for state, event_id in STATES.items():
            assert await listed(harness, limit=1, state=state) == [event_id]

    async def test_a_row_shows_its_state(self, harness: StoreHarness) -> None:
        await one_of_each(harness)
        rows = {row.event_id: row for row in await pages(harness, EventFilter(), limit=100)}
        retry, dead, published = rows["retry"], rows["dead"], rows["published"]
        assert (retry.status, retry.event_type, retry.key, retry.destination) == (
            Status.PENDING,
            "thing.happened",
            "key of retry",
            "x",
        )
        assert (retry.attempts, retry.retry_count, retry.last_error) == (1, 1, "no")
        assert retry.next_retry_at is not None
        assert at(HOUR - 60) < retry.next_retry_at < at(HOUR + 60)
        assert (dead.attempts, dead.last_error, dead.next_retry_at) == (1, "rejected", None)
        assert rows["blocked"].next_retry_at is None
        assert published.published_at is not None
        assert published.recorded_at <= published.published_at

    async def test_since_excludes_earlier_events(self, harness: StoreHarness) -> None:
        await one_of_each(harness)
        rows = await pages(harness, EventFilter(), limit=100)
        middle = rows[3].recorded_at
        later = [row.event_id for row in rows if row.recorded_at >= middle]
        assert await listed(harness, since=middle, limit=2) == later
        assert await listed(harness, since=at(HOUR)) == []

    async def test_until_excludes_events_at_or_after_it(self, harness: StoreHarness) -> None:
        await one_of_each(harness)
        rows = await pages(harness, EventFilter(), limit=100)
        middle = rows[3].recorded_at
        earlier = [row.event_id for row in rows if row.recorded_at < middle]
        for limit in (1, 100):
            assert await listed(harness, until=middle, limit=limit) == earlier
            assert len(await listed(harness, until=at(HOUR), limit=limit)) == len(rows)

    async def test_a_list_can_be_filtered_by_aggregate_independent_of_the_key(self, harness: StoreHarness) -> None:
        cases: list[tuple[str, list[str]]] = [
            ("ORDER", ["waits", "dead", "sent"]),
            ("ORDER:42", ["dead", "sent"]),
            ("ORDER:4", []),
            ("42", []),
        ]
        owner = await Owner.of(harness.store)
        await harness.commit(event("none"))
        await harness.commit(event("sent", aggregate_type="ORDER", aggregate_id="42"))
        await harness.commit(event("dead", "another key", aggregate_type="ORDER", aggregate_id="42"))
        await harness.commit(event("waits", aggregate_type="ORDER", aggregate_id="43"))
        messages = {message.event_id: message for message in await owner.ready()}
        await owner.settle(DELIVERED, messages["sent"])
        await owner.settle(Dead(error="no"), messages["dead"])
        for aggregate, found in cases:
            assert await listed(harness, aggregate=aggregate) == found, aggregate

    async def test_copies_for_several_destinations_are_separate_rows_across_pages(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"), event("b"))
        for message in await owner.ready():
            await owner.split(message, "x", "y", "z")
        rows = await pages(harness, EventFilter(), limit=2)
        assert sorted((row.event_id, row.destination) for row in rows) == [(e, d) for e in "ab" for d in "xyz"]

    async def test_events_of_one_transaction_are_listed_by_sequence(self, harness: StoreHarness) -> None:
        await harness.commit(*(event(f"{n}") for n in range(10)))
        assert await listed(harness, limit=3) == [f"{n}" for n in reversed(range(10))]

    async def test_concurrently_recorded_events_do_not_shift_the_pages(self, harness: StoreHarness) -> None:
        await harness.commit(*(event(f"{n}") for n in range(4)))
        first = await harness.store.admin.events.list(EventFilter(), limit=2)
        await harness.commit(event("new"))
        second = await harness.store.admin.events.list(EventFilter(), limit=2, after=first.after)
        assert [row.event_id for row in (*first.events, *second.events)] == ["3", "2", "1", "0"]

    async def test_a_position_can_be_serialized(self, harness: StoreHarness) -> None:
        await harness.commit(event("a", destination="x, y/é"), event("b", destination="x"), event("c", destination="x"))
        [c, *_] = (await harness.store.admin.events.list(EventFilter(), limit=1)).events
        after = Position.parse(str(c.position))
        rest = await harness.store.admin.events.list(EventFilter(), limit=9, after=after)
        assert [row.event_id for row in rest.events] == ["b", "a"]
        assert Position.parse(str(rest.events[1].position)) == rest.events[1].position


@needing("listings")
class DeadLetterListConformance:
    async def test_dead_letters_are_listed_newest_first(self, harness: StoreHarness) -> None:
        await _make_dead_letters(harness)
        for limit in (1, 2, 100):
            assert [one.event_id for one in await list_dead_letters(harness, limit=limit)] == ["d", "c", "b", "a"]

    async def test_dead_letters_can_be_filtered(self, harness: StoreHarness) -> None:
        cases: list[tuple[dict[str, Any], list[str]]] = [
            ({"event_id": "b"}, ["b"]),
            ({"key": "odd"}, ["d", "b"]),
            ({"event_type": "thing.happened"}, ["d", "c", "b", "a"]),
            ({"event_type": "another"}, []),
            ({"destination": "x"}, ["c", "a"]),
            ({"error": "timeout"}, ["d", "c"]),
            ({"error": "%"}, []),
            ({"key": "odd", "error": "timeout"}, ["d"]),
            ({"event_type": "thing.happened", "destination": "y"}, ["d", "b"]),
            ({"since": at(HOUR)}, []),
        ]
        await _make_dead_letters(harness)
        for limit in (1, 100):
            for wanted, found in cases:
                dead_letters = await list_dead_letters(harness, limit=limit, **wanted)
                assert [one.event_id for one in dead_letters] == found, wanted

    async def test_a_search_for_dead_letters_in_small_steps_finds_everything(
        self, harness: StoreHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pillarbox.admin.listing.ROWS_SCANNED", 1)
        await _make_dead_letters(harness)
        found = await list_dead_letters(harness, limit=1, error="refused")
        assert [one.event_id for one in found] == ["b", "a"]

    async def test_since_refers_to_the_time_of_dead_lettering(self, harness: StoreHarness) -> None:
        await _make_dead_letters(harness)
        oldest = (await list_dead_letters(harness))[-1]
        assert oldest.recorded_at <= oldest.dead_lettered_at
        assert len(await list_dead_letters(harness, since=oldest.dead_lettered_at)) == 4
        later = await list_dead_letters(harness, since=oldest.dead_lettered_at + timedelta(hours=1))
        assert later == []

    async def test_the_numbers_identify_the_dead_letters(self, harness: StoreHarness) -> None:
        await _make_dead_letters(harness)
        [b] = await list_dead_letters(harness, event_id="b")
        assert await harness.store.admin.dead_letters.discard([b.id]) == 1
        assert [one.event_id for one in await list_dead_letters(harness)] == ["d", "c", "a"]

    async def test_complete_dead_letters_are_read_by_their_numbers(self, harness: StoreHarness) -> None:
        await _make_dead_letters(harness)
        d, c, _, a = await list_dead_letters(harness)
        await harness.store.admin.dead_letters.discard([c.id])
        whole = await harness.store.admin.dead_letters.details([a.id, c.id, d.id, a.id])
        assert [detail.dead_letter_id for detail in whole] == [d.id, a.id]
        for detail in whole:
            assert (await harness.store.admin.events.show(detail.event_id)).events == [detail]
        assert await harness.store.admin.dead_letters.details([]) == []


async def _make_dead_letters(harness: StoreHarness) -> None:
    owner = await Owner.of(harness.store)
    for number, event_id in enumerate("abcd"):
        key, destination = ("odd", "y") if number % 2 else ("even", "x")
        await harness.commit(event(event_id, key, destination=destination))
        error = "timeout of 30 s" if number > 1 else "refused"
        await owner.settle(Dead(error=error), *await owner.ready())


@needing("listings")
class EventDetailConformance:
    async def test_an_unknown_event_has_no_details(self, harness: StoreHarness) -> None:
        assert await harness.store.admin.events.show("nothing") == ([], [], [])

    async def test_all_recorded_fields_are_shown(self, harness: StoreHarness) -> None:
        recorded = event(
            "a",
            payload=b"\x00\xff",
            aggregate_type="ORDER",
            aggregate_id="42",
            headers={"tenant": "é"},
            schema_version=3,
            correlation_id="c1",
            causation_id="c0",
            trace_id="t",
            occurred_at=at(-HOUR),
        )
        await harness.commit(recorded)
        [detail] = (await harness.store.admin.events.show("a")).events
        assert (bytes(detail.payload), detail.content_type) == (b"\x00\xff", "application/octet-stream")
        assert (detail.status, detail.key, detail.headers) == (Status.PENDING, "ORDER:42", {"tenant": "é"})
        for field in ("aggregate_type", "aggregate_id", "correlation_id", "causation_id", "trace_id", "occurred_at"):
            assert getattr(detail, field) == getattr(recorded, field)
        assert (detail.event_type, detail.schema_version, detail.dead_letter_id) == ("thing.happened", 3, None)

    async def test_each_destination_is_shown_separately(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        [whole] = await owner.ready()
        await owner.split(whole, "x", "y", "z")
        x, y, _ = sorted(await owner.ready(), key=lambda message: message.destination)
        await owner.settle(DELIVERED, x)
        await owner.settle(Dead(error="no"), y)
        details = await harness.store.admin.events.show("a")
        assert [(detail.destination, detail.status) for detail in details.events] == [
            ("x", Status.PUBLISHED),
            ("y", Status.FAILED),
            ("z", Status.PENDING),
        ]
        [dead_letter] = await list_dead_letters(harness)
        assert (details.events[1].dead_letter_id, details.events[1].dead_lettered_at) == (
            dead_letter.id,
            dead_letter.dead_lettered_at,
        )
        assert (details.events[0].dead_letter_id, details.events[2].dead_letter_id) == (None, None)
