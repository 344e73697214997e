"""Fetches from low-water marks never hide an event, whatever transactions overlap and whatever an operator does."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Collection
from contextlib import aclosing
from typing import Any

import pytest

from pillarbox.core.fetch import Ready
from pillarbox.core.lane import RelayRegistration, epochs_of
from pillarbox.core.outcome import DELIVERED, Decision
from pillarbox.statements import Names
from pillarbox.stores.postgres import PostgresStore, low_water_marks
from pillarbox.stores.postgres.low_water_marks import DecidedSequences
from pillarbox.stores.postgres.statements import PostgresStatements
from pillarbox.testing.waiting import eventually
from tests.databases import Sql
from tests.integration.postgres.random_walk import LANES, RECORD, EventHiddenError, walking

STEPS = 250
READY = Ready(lanes=LANES)
WAITS_FOR_LONG = """
SELECT count(*) > 0 FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > '50ms'
"""


@pytest.mark.parametrize("seed", range(4))
async def test_a_fetch_from_low_water_marks_finds_what_a_fetch_without_them_finds(postgres_url: str, seed: int) -> None:
    async with walking(postgres_url, seed) as walk:
        for _ in range(STEPS):
            await walk.step()
        for producer in walk.producers:
            producer.savepoints.clear()
            if producer.is_open:
                await producer.sql.execute("COMMIT")
        await walk.search()
        await walk.search()
        await walk.compare()
        assert walk.with_marks.messages.low_water_marks._marks.keys() == set(LANES)


async def test_low_water_marks_over_undecided_sequences_would_hide_an_event(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def see(decided: DecidedSequences, last: int, _: Collection[str]) -> None:
        decided.limit = decided.last = last

    monkeypatch.setattr(DecidedSequences, "see", see)
    async with walking(postgres_url, 0) as walk:
        with pytest.raises(EventHiddenError):
            for _ in range(STEPS):
                await walk.step()


async def delivered(store: PostgresStore) -> list[str]:
    """Deliver what is ready."""
    epochs = epochs_of(await store.lanes.acquire("a", limit=len(LANES)))
    found = await store.messages.fetch(READY)
    await store.writes.settle(epochs, [Decision(message, DELIVERED, "x") for message in found])
    await store.lanes.release("a", epochs)
    return [message.event_id for message in found]


@pytest.fixture
async def relay(store: PostgresStore) -> PostgresStore:
    """A store whose relay delivered an event. It searches for marks only when told to, and keeps them."""
    await store.lanes.join(RelayRegistration(id="a"), lease=600)
    store.messages.low_water_marks.slow = -1
    return store


def lowest(store: PostgresStore) -> int:
    """The lowest mark; 0: a lane has none."""
    return min(store.messages.low_water_marks._marks.get(lane, 0) for lane in LANES)


async def search(store: PostgresStore, *, times: int = 3) -> None:
    for _ in range(times):
        await store.messages.low_water_marks.search(LANES)


async def test_a_fetch_of_lanes_without_low_water_marks_begins_at_their_start(relay: PostgresStore, sql: Sql) -> None:
    await sql.execute(RECORD, "event", "key")
    await relay.messages.low_water_marks.search(LANES[:32])
    assert await relay.messages.low_water_marks.known([]) is None
    found = [await relay.messages.fetch(Ready(lanes=lanes)) for lanes in ([], LANES[:32], LANES[32:])]
    assert [message.event_id for messages in found for message in messages] == ["event"]


async def test_low_water_marks_rise_behind_a_long_reader(relay: PostgresStore, sql: Sql, other_session: Sql) -> None:
    await other_session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM outbox_message")
    for number in range(3):
        await sql.execute(RECORD, f"event-{number}", "key")
        assert await delivered(relay) == [f"event-{number}"]
        await search(relay)
        assert lowest(relay) == number + 2


async def test_low_water_marks_stay_below_what_a_long_writer_may_commit(
    relay: PostgresStore, sql: Sql, other_session: Sql
) -> None:
    await sql.execute(RECORD, "before", "key")
    assert await delivered(relay) == ["before"]
    await search(relay)
    await other_session.execute("BEGIN")
    await other_session.execute(RECORD, "late", "key")
    for number in range(3):
        await sql.execute(RECORD, f"event-{number}", "other key")
        assert await delivered(relay) == [f"event-{number}"]
        await search(relay)
    assert lowest(relay) == 2
    await other_session.execute("COMMIT")
    await sql.execute(RECORD, "after", "key")
    await search(relay)
    assert await delivered(relay) == ["late", "after"]
    await search(relay)
    assert lowest(relay) == 7


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
async def test_a_transaction_that_is_prepared_meanwhile_is_still_undecided(
    relay: PostgresStore, sql: Sql, other_session: Sql, end: str
) -> None:
    name = await sql.fetchval("SELECT current_database()")
    await sql.execute(RECORD, "before", "key")
    await other_session.execute("BEGIN")
    await other_session.execute(RECORD, "prepared", "key")
    await sql.execute(RECORD, "other", "other key")
    await search(relay, times=1)
    await other_session.execute(f"PREPARE TRANSACTION '{name}'")
    try:
        assert await delivered(relay) == ["before", "other"]
        await search(relay)
        assert lowest(relay) <= 2
    finally:
        await sql.execute(f"{end} PREPARED '{name}'")
    assert await delivered(relay) == (["prepared"] if end == "COMMIT" else [])
    await search(relay)
    assert lowest(relay) == 4


async def test_the_sequence_is_read_before_the_locks(sql: Sql) -> None:
    """A subplan of the row that has the sequence cannot run before it; an initplan could."""
    find_writers = PostgresStatements(Names(schema="public")).get("find_writers")
    [root] = json.loads(await sql.fetchval(f"EXPLAIN (FORMAT JSON) {find_writers}"))

    def nodes(node: dict[str, Any]) -> list[dict[str, Any]]:
        return [node, *(below for child in node.get("Plans", ()) for below in nodes(child))]

    [locks] = [
        node
        for node in nodes(root["Plan"])
        if node.get("Parent Relationship") in ("SubPlan", "InitPlan")
        and any(below.get("Function Name") == "pg_lock_status" for below in nodes(node))
    ]
    assert locks["Parent Relationship"] == "SubPlan"
    assert "last > 0" in str(nodes(locks))


@pytest.mark.parametrize(
    "reset",
    [
        "TRUNCATE outbox_message RESTART IDENTITY",
        "ALTER TABLE outbox_message ALTER id RESTART WITH 1",
        "SELECT setval(pg_get_serial_sequence('outbox_message', 'id'), 1, false)",
    ],
)
async def test_sequences_that_are_drawn_again_are_fetched_in_order(relay: PostgresStore, sql: Sql, reset: str) -> None:
    for number in range(5):
        await sql.execute(RECORD, f"before-{number}", "key")
    await delivered(relay)
    await search(relay)
    assert lowest(relay) == 6
    await sql.execute(reset)
    for number in range(3):
        await sql.execute(RECORD, f"event-{number}", "key")
    assert [message.event_id for message in await relay.messages.fetch(READY)] == ["event-0", "event-1", "event-2"]
    for number in range(3, 10):
        await sql.execute(RECORD, f"event-{number}", "key")
    assert await delivered(relay) == [f"event-{number}" for number in range(10)]


async def test_a_role_without_the_right_to_read_the_sequence_does_without_low_water_marks(
    postgres_url: str, sql: Sql, roles: dict[str, str]
) -> None:
    async with aclosing(PostgresStore(postgres_url.replace("postgres@", f"{roles['relay']}@"))) as store:
        await store.lanes.join(RelayRegistration(id="a"), lease=600)
        await sql.execute(RECORD, "event", "key")
        await search(store)
        assert lowest(store) == 1
        await sql.execute(f'REVOKE ALL ON SEQUENCE outbox_message_id_seq FROM "{roles["relay"]}"')
        assert await delivered(store) == ["event"]
        await search(store)
        assert lowest(store) == 0
        await sql.execute(RECORD, "later event", "key")
        assert await delivered(store) == ["later event"]


async def test_a_role_that_must_not_read_the_locks_does_without_low_water_marks(
    postgres_url: str, sql: Sql, roles: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(low_water_marks, "FORBIDDEN_FOR", math.inf)
    await sql.execute("REVOKE SELECT ON pg_locks FROM PUBLIC")
    async with aclosing(PostgresStore(postgres_url.replace("postgres@", f"{roles['relay']}@"))) as store:
        await store.lanes.join(RelayRegistration(id="a"), lease=600)
        store.messages.low_water_marks.slow = -1
        for number in range(3):
            await sql.execute(RECORD, f"event-{number}", "key")
            assert await delivered(store) == [f"event-{number}"]
        assert lowest(store) == 0
        assert store.messages.low_water_marks._next_search == math.inf


async def test_a_sequence_that_sessions_cache_gives_no_low_water_marks(
    relay: PostgresStore, sql: Sql, other_session: Sql
) -> None:
    await sql.execute("ALTER TABLE outbox_message ALTER id SET CACHE 10")
    await other_session.execute(RECORD, "first", "key")
    await sql.execute(RECORD, "second", "key")
    await delivered(relay)
    await search(relay)
    # Of the ten that its session took, far below the last one.
    await other_session.execute(RECORD, "third", "key")
    assert await delivered(relay) == ["third"]


async def test_what_is_made_ready_by_hand_is_found_by_a_check(relay: PostgresStore, sql: Sql) -> None:
    await sql.execute(RECORD, "held", "key")
    await sql.execute("UPDATE outbox_message SET held = 'parked'")
    await sql.execute(RECORD, "event", "other key")
    assert await delivered(relay) == ["event"]
    await search(relay)
    marks = relay.messages.low_water_marks
    marks._next_check = math.inf
    await sql.execute("UPDATE outbox_message SET held = NULL")
    assert await delivered(relay) == []
    marks._next_search = math.inf
    for _ in LANES:
        await marks.check()
    assert await delivered(relay) == ["held"]


async def test_a_slow_fetch_leads_to_low_water_marks_and_fast_checks_to_none(
    store: PostgresStore, sql: Sql, other_session: Sql
) -> None:
    await store.lanes.join(RelayRegistration(id="a"), lease=600)
    await sql.execute(RECORD, "event", "key")
    assert await delivered(store) == ["event"]
    marks = store.messages.low_water_marks
    marks._took = 0.0
    async with other_session.transaction():
        await other_session.execute("LOCK outbox_message IN ACCESS EXCLUSIVE MODE")
        fetch = asyncio.create_task(store.messages.fetch(READY))
        await eventually(lambda: sql.fetchval(WAITS_FOR_LONG))
    assert await fetch == []
    assert lowest(store) == 0
    await store.messages.fetch(READY)
    assert lowest(store) == 2
    marks.slow = math.inf
    for _ in LANES:
        if marks._marks:
            await marks.check()
    assert lowest(store) == 0
