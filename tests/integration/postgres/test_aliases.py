"""The compatibility views: statements of other outboxes run unchanged, and only new events can be inserted."""

import json
from datetime import UTC, datetime

import asyncpg
import pytest

from pillarbox.core.fetch import Ready
from pillarbox.core.lane import Epochs, RelayRegistration, epochs_of
from pillarbox.core.message import Message
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Resolved, Retry
from pillarbox.relay.envelope import outgoing_headers
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.lookup import dead_letters
from tests.databases import Sql

# Statements of producers of other outboxes, with their columns and literals.
PRODUCER_INSERTS = {
    "event_outbox with a numeric aggregate_id": """
        INSERT INTO event_outbox (event_id, event_type, aggregate_type, aggregate_id, status, payload, created_at)
        VALUES ('e-1', 'RESERVATION_REQUESTED', 'RESTAURANT', 5, 'PENDING', '{"table": 7}'::json, NOW())""",
    "event_outbox with metadata": """
        INSERT INTO event_outbox (event_id, event_type, aggregate_id, payload, metadata)
        VALUES ('e-1', 'user.created', 'user-123', '{"email": "test@example.com"}'::jsonb,
                '{"correlation_id": "c-1"}'::jsonb)""",
    "event_outbox with every column": """
        INSERT INTO event_outbox (id, event_id, event_type, aggregate_id, payload, metadata, created_at, published_at,
                                  retry_count, last_error, last_retry_at)
        VALUES (gen_random_uuid(), 'e-1', 'user.created', 'user-123', '{}', '{}', NOW(), NULL, 0, NULL, NULL)""",
    "outbox_events with every column": """
        INSERT INTO outbox_events (aggregate_id, aggregate_type, created_at, event_id, event_type, last_error,
                                   next_retry_at, payload, retry_count, sent_at, status, id)
        VALUES ('123e4567-e89b-12d3-a456-426614174000'::uuid, 'Document', NOW(), 'e-1', 'DocumentUploaded', NULL, NULL,
                '{"fileSize": 1024000}', 0, NULL, 'PENDING', gen_random_uuid())""",
    "integration events": """
        INSERT INTO outbox_integration_event (id, event_type, payload_json, status, attempts, next_retry_at, locked_by,
                                              locked_at, occurred_at, correlation_id, trace_id)
        VALUES ('e-1', 'attendance.absence_notice_submitted', '{"studentId": "s-1"}'::jsonb, 'NEW', 0, NULL, NULL, NULL,
                NOW(), 'req-123', 'trace-456')""",
}

# Polling statements of other publishers; the limits are placeholders in the originals.
POLLS = (
    """
    SELECT * FROM outbox_events
    WHERE status = 'PENDING'
    OR (status = 'PENDING' AND next_retry_at <= NOW())
    ORDER BY created_at ASC
    LIMIT 10
    FOR UPDATE SKIP LOCKED""",
    """
    SELECT * FROM event_outbox
    WHERE published_at IS NULL
      AND retry_count < 1
      AND (last_retry_at IS NULL OR last_retry_at < NOW() - INTERVAL '1 second')
    ORDER BY created_at ASC
    LIMIT 10
    FOR UPDATE SKIP LOCKED;  -- Critical for concurrent safety""",
)

# `max_retries` is a placeholder in the original.
MOVE_TO_DLQ = """
    INSERT INTO event_outbox_dlq
    SELECT * FROM event_outbox
    WHERE retry_count >= 5
      AND published_at IS NULL;"""
DELETE_MOVED = """
    DELETE FROM event_outbox
    WHERE retry_count >= 5
      AND published_at IS NULL;"""
DELETE_PUBLISHED = """
    DELETE FROM event_outbox
    WHERE published_at < NOW() - INTERVAL '7 days';"""
ARCHIVE = """
    INSERT INTO event_outbox_archive
    SELECT * FROM event_outbox
    WHERE published_at < NOW() - INTERVAL '30 days';

    DELETE FROM event_outbox
    WHERE published_at < NOW() - INTERVAL '30 days';"""
HEALTH = """
    SELECT
        COUNT(*) FILTER (WHERE published_at IS NULL) AS unpublished_count,
        COUNT(*) FILTER (WHERE retry_count > 0) AS retry_count,
        COUNT(*) FILTER (WHERE retry_count >= 5) AS max_retry_count,
        AVG(EXTRACT(EPOCH FROM (published_at - created_at))) AS avg_publish_latency_secs,
        MAX(retry_count) AS max_retry
    FROM event_outbox
    WHERE created_at > NOW() - INTERVAL '1 hour';"""


async def own_everything(store: PostgresStore) -> Epochs:
    await store.lanes.join(RelayRegistration(id="r1", name="relay-a"), lease=60)
    return epochs_of(await store.lanes.acquire("r1", limit=64))


async def read(store: PostgresStore, epochs: Epochs) -> list[Message]:
    return await store.messages.fetch(Ready(lanes=list(epochs)))


async def insert(sql: Sql, *event_ids: str) -> None:
    for event_id in event_ids:
        await sql.execute(
            "INSERT INTO event_outbox (event_id, event_type, aggregate_id, payload) VALUES ($1, 'a', $1, '{\"n\": 1}')",
            event_id,
        )


async def shown(sql: Sql, view: str) -> dict[str, str]:
    return {row[0]: row[1] for row in await sql.fetch(f"SELECT id, status FROM {view}")}


@pytest.mark.parametrize("statement", PRODUCER_INSERTS)
async def test_an_insert_of_another_producer_records_the_event(statement: str, store: PostgresStore, sql: Sql) -> None:
    await sql.execute(PRODUCER_INSERTS[statement])
    [message] = await read(store, await own_everything(store))
    assert message.event_id == "e-1"
    assert (message.destination, message.attempts, message.content_type) == ("", 0, "application/json")
    assert isinstance(json.loads(message.payload), dict)


async def test_inserted_values_are_kept(store: PostgresStore, sql: Sql) -> None:
    for statement in PRODUCER_INSERTS.values():
        await sql.execute(statement.replace("'e-1'", f"'{statement.split('(')[0].split()[-1]}-{len(statement)}'"))
    by_type = {message.event_type: message for message in await read(store, await own_everything(store))}
    reservation = by_type["RESERVATION_REQUESTED"]
    assert (reservation.aggregate_type, reservation.aggregate_id) == ("RESTAURANT", "5")
    assert json.loads(reservation.payload) == {"table": 7}
    document = by_type["DocumentUploaded"]
    assert (document.aggregate_type, document.aggregate_id) == ("Document", "123e4567-e89b-12d3-a456-426614174000")
    absence = by_type["attendance.absence_notice_submitted"]
    assert (absence.correlation_id, absence.trace_id) == ("req-123", "trace-456")
    assert json.loads(absence.payload) == {"studentId": "s-1"}


async def test_metadata_becomes_headers(store: PostgresStore, sql: Sql) -> None:
    metadata = {"correlation_id": "c-1", "n": 7, "flag": True, "nested": {"a": [1]}, "nothing": None}
    await sql.execute(
        "INSERT INTO event_outbox (event_id, event_type, payload, metadata) VALUES ('a', 'a', '{}', $1)",
        json.dumps(metadata),
    )
    [message] = await read(store, await own_everything(store))
    assert message.correlation_id == "c-1"
    sent = outgoing_headers(message)
    assert (sent["n"], sent["flag"], json.loads(sent["nested"])) == ("7", "true", {"a": [1]})
    assert json.loads(await sql.fetchval("SELECT metadata FROM event_outbox")) == metadata


@pytest.mark.parametrize("view", ["event_outbox", "outbox_events"])
async def test_returning_returns_the_recorded_row(view: str, sql: Sql) -> None:
    row = await sql.fetchrow(
        f"INSERT INTO {view} (event_type, aggregate_id, payload, created_at)"
        " VALUES ('a', 7, '{}', '2026-02-13T10:30:00Z') RETURNING *"
    )
    assert row is not None
    assert row["id"] == row["event_id"] == await sql.fetchval("SELECT event_id FROM outbox_message")
    assert (row["status"], row["retry_count"], row["aggregate_id"]) == ("PENDING", 0, "7")
    assert row["created_at"] == datetime(2026, 2, 13, 10, 30, tzinfo=UTC)
    assert dict(row) == dict(await sql.fetchrow(f"SELECT * FROM {view}") or {})


async def test_several_rows_are_inserted_in_order(store: PostgresStore, sql: Sql) -> None:
    returned = await sql.fetch(
        "INSERT INTO outbox_integration_event (id, event_type, payload_json)"
        " VALUES ('1', 'a', '{}'), ('2', 'a', '{}') RETURNING id, status"
    )
    assert [tuple(row) for row in returned] == [("1", "NEW"), ("2", "NEW")]
    await sql.execute(
        "INSERT INTO event_outbox (event_id, event_type, aggregate_id, payload)"
        " SELECT 'g-' || n, 'a', 'same', jsonb_build_object('n', n) FROM generate_series(1, 200) n ORDER BY n"
    )
    epochs = await own_everything(store)
    of_key = [message.event_id for message in await read(store, epochs) if message.aggregate_id == "same"]
    assert of_key == [f"g-{n}" for n in range(1, 201)]
    assert await sql.fetchval("SELECT count(*) FROM outbox_message") == 202


async def test_a_scheduled_event_waits_for_its_time(store: PostgresStore, sql: Sql) -> None:
    await sql.execute(
        "INSERT INTO outbox_events (event_id, event_type, payload, next_retry_at)"
        " VALUES ('later', 'a', '{}', now() + interval '1 hour')"
    )
    assert await read(store, await own_everything(store)) == []
    assert await sql.fetchval("SELECT next_retry_at > now() FROM outbox_events")


async def test_a_recorded_event_id_is_a_unique_violation(sql: Sql) -> None:
    """Like the table that the view replaces. ON CONFLICT has no effect on a view."""
    await insert(sql, "a")
    with pytest.raises(asyncpg.UniqueViolationError):
        await insert(sql, "a")
    once_more = "INSERT INTO event_outbox (event_id, event_type, payload) VALUES ('a', 'a', '{}')"
    with pytest.raises(asyncpg.UniqueViolationError):
        await sql.execute(f"{once_more} ON CONFLICT DO NOTHING")
    with pytest.raises(asyncpg.PostgresError, match="ON CONFLICT"):
        await sql.execute(f"{once_more} ON CONFLICT (event_id) DO NOTHING")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("event_outbox (event_type, payload, status) VALUES ('a', '{}', 'PROCESSED')", "status PENDING"),
        ("event_outbox (event_type, payload, status) VALUES ('a', '{}', 'NEW')", "status PENDING"),
        ("event_outbox (event_type, payload, published_at) VALUES ('a', '{}', now())", "only a new event"),
        ("event_outbox (event_type, payload, retry_count) VALUES ('a', '{}', 3)", "only a new event"),
        ("event_outbox (event_type, payload, metadata) VALUES ('a', '{}', '[1]')", "metadata is a JSON array"),
        ("outbox_events (event_type, payload, status) VALUES ('a', '{}', 'SENT')", "status PENDING"),
        ("outbox_events (event_type, payload, sent_at) VALUES ('a', '{}', now())", "only a new event"),
        ("outbox_integration_event (event_type, payload_json, status) VALUES ('a', '{}', 'PENDING')", "status NEW"),
        ("outbox_integration_event (event_type, payload_json, locked_by) VALUES ('a', '{}', 'w')", "only a new event"),
        ("outbox_events (event_type, payload, extra) VALUES ('a', '{}', 1)", 'column "extra"'),
        ("outbox_events (payload) VALUES ('{}')", '"event_type"'),
        ("outbox_events (event_type) VALUES ('a')", '"payload"'),
        ("event_outbox_dlq (event_id, destination) VALUES ('unknown', '')", "neither pending nor a dead letter"),
    ],
)
async def test_only_new_events_can_be_inserted(statement: str, words: str, sql: Sql) -> None:
    with pytest.raises(asyncpg.PostgresError, match=words):
        await sql.execute(f"INSERT INTO {statement}")
    assert await sql.fetchval("SELECT count(*) FROM outbox_event") == 0


async def test_each_view_has_its_own_status_values(store: PostgresStore, sql: Sql) -> None:
    epochs = await own_everything(store)
    await insert(sql, "done", "tried", "dead", "deferred")
    done, tried, dead, deferred = sorted(await read(store, epochs), key=lambda m: m.id)
    await store.writes.settle(
        epochs,
        [
            Decision(done, DELIVERED, "x"),
            Decision(tried, Retry(delay=3600, error="no"), "x"),
            Decision(dead, Dead(error="no"), "x"),
        ],
    )
    await store.writes.count_attempt(epochs, [Resolved(deferred, "x")], error="broker down")
    await insert(sql, "new")
    assert await shown(sql, "event_outbox") == {
        "done": "PROCESSED", "tried": "PENDING", "dead": "FAILED", "deferred": "PENDING", "new": "PENDING",
    }  # fmt: skip
    assert await shown(sql, "outbox_events") == {
        "done": "SENT", "tried": "PENDING", "dead": "FAILED", "deferred": "PENDING", "new": "PENDING",
    }  # fmt: skip
    assert await shown(sql, "outbox_integration_event") == {
        "done": "DONE", "tried": "FAILED", "dead": "FAILED", "deferred": "FAILED", "new": "NEW",
    }  # fmt: skip
    last = {row["id"]: row for row in await sql.fetch("SELECT id, last_retry_at, last_error FROM event_outbox")}
    assert (last["new"]["last_retry_at"], last["new"]["last_error"]) == (None, None)
    assert (last["tried"]["last_retry_at"] is not None, last["tried"]["last_error"]) == (True, "no")
    attempts = {
        row["id"]: row["attempts"] for row in await sql.fetch("SELECT id, attempts FROM outbox_integration_event")
    }
    assert attempts == {"done": 0, "tried": 1, "dead": 1, "deferred": 1, "new": 0}
    permanently = "SELECT id FROM outbox_integration_event WHERE status = 'FAILED' AND next_retry_at IS NULL"
    assert [row[0] for row in await sql.fetch(permanently)] == ["dead"]
    polled = [sorted(row["id"] for row in await sql.fetch(poll)) for poll in POLLS]
    assert polled == [["deferred", "new", "tried"], ["new"]]


async def test_dead_letters_are_moved_by_the_original_statements(store: PostgresStore, sql: Sql) -> None:
    epochs = await own_everything(store)
    await insert(sql, "dead", "stuck", "fresh")
    dead, stuck, _ = sorted(await read(store, epochs), key=lambda m: m.id)
    await store.writes.settle(
        epochs, [Decision(dead, Dead(error="no"), "x"), Decision(stuck, Retry(delay=3600, error="no"), "x")]
    )
    await sql.execute("UPDATE outbox_dead_letter SET attempts = 5")
    await sql.execute("UPDATE outbox_message SET attempts = 6 WHERE event_id = 'stuck'")
    [health] = await sql.fetch(HEALTH)
    assert (health["unpublished_count"], health["max_retry_count"], health["max_retry"]) == (3, 2, 6)

    await sql.execute(MOVE_TO_DLQ)
    await sql.execute(MOVE_TO_DLQ)
    await sql.execute(DELETE_MOVED)
    assert (await store.writes.execute_requests(epochs)).done == 1
    assert await shown(sql, "event_outbox_dlq") == {"dead": "FAILED", "stuck": "FAILED"}
    assert sorted(dead_letter.event_id for dead_letter in await dead_letters(store)) == ["dead", "stuck"]
    assert "dead" not in await shown(sql, "event_outbox")
    await sql.execute(MOVE_TO_DLQ + DELETE_MOVED)
    assert await shown(sql, "event_outbox") == {"fresh": "PENDING"}

    await sql.execute("UPDATE event_outbox_dlq SET status = 'PENDING' WHERE event_id = 'dead'")
    await sql.execute("DELETE FROM event_outbox_dlq WHERE event_id = 'stuck'")
    assert await shown(sql, "event_outbox") == {"fresh": "PENDING", "dead": "PENDING"}
    assert await sql.fetchval("SELECT count(*) FROM event_outbox_moved") == 0
    assert await sql.fetchval("SELECT count(*) FROM outbox_audit WHERE what = 'discard' AND subject = 'stuck'") == 1


async def test_an_event_that_was_not_moved_is_not_deleted(sql: Sql) -> None:
    await insert(sql, "fresh")
    for view in ("event_outbox", "outbox_events", "outbox_integration_event"):
        with pytest.raises(asyncpg.CheckViolationError, match="not published"):
            await sql.execute(f"DELETE FROM {view} WHERE id = 'fresh'")
    assert await sql.fetchval("SELECT count(*) FROM outbox_message") == 1


async def test_published_events_are_archived_and_deleted_by_the_original_statements(
    store: PostgresStore, sql: Sql
) -> None:
    epochs = await own_everything(store)
    await insert(sql, "ancient", "old", "today")
    await store.writes.settle(epochs, [Decision(message, DELIVERED, "x") for message in await read(store, epochs)])
    for event_id, days in (("ancient", 31), ("old", 8)):
        await sql.execute(
            f"UPDATE outbox_history SET published_at = published_at - interval '{days} days' WHERE event_id = $1",
            event_id,
        )
    await sql.execute(
        "INSERT INTO outbox_history SELECT (h).* FROM (SELECT h FROM outbox_history h WHERE event_id = 'today') x"
    )
    await sql.execute(
        "UPDATE outbox_history SET published_at = published_at - interval '8 days'"
        " WHERE ctid = (SELECT min(ctid) FROM outbox_history WHERE event_id = 'today')"
    )
    await sql.execute(ARCHIVE)
    assert await shown(sql, "event_outbox_archive") == {"ancient": "PROCESSED"}
    assert json.loads(await sql.fetchval("SELECT payload FROM event_outbox_archive")) == {"n": 1}
    assert sorted(row[0] for row in await sql.fetch("SELECT id FROM event_outbox")) == ["old", "today", "today"]
    await sql.execute(DELETE_PUBLISHED)
    assert [row[0] for row in await sql.fetch("SELECT id FROM event_outbox")] == ["today"]


async def test_applying_the_views_again_keeps_their_grants(store: PostgresStore, sql: Sql) -> None:
    await sql.execute("GRANT SELECT ON outbox_events TO PUBLIC")
    await store.schema.apply(aliases=True)
    assert await sql.fetchval("SELECT relacl::text FROM pg_class WHERE relname = 'outbox_events'")


async def test_hostile_temporary_objects_do_not_change_what_the_triggers_do(sql: Sql) -> None:
    """A role that can create temporary objects cannot divert inserts of its own or other sessions."""
    await sql.execute("CREATE TEMP TABLE outbox_message (event_id text)")
    await sql.execute(
        "CREATE FUNCTION pg_temp.convert_to(text, text) RETURNS bytea LANGUAGE sql AS $$ SELECT '\\x00'::bytea $$"
    )
    await sql.execute(
        "CREATE FUNCTION pg_temp.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'infinity'::timestamptz $$"
    )
    await insert(sql, "a")
    row = await sql.fetchrow("SELECT payload, isfinite(recorded_at) AS finite FROM public.outbox_message")
    assert row is not None
    assert (row["payload"], row["finite"]) == (b'{"n": 1}', True)
    definers = "SELECT proname FROM pg_proc WHERE prosecdef AND proname ~ 'alias|insert|dlq'"
    assert await sql.fetch(definers) == []


async def test_the_ledger_has_its_compatibility_view(sql: Sql) -> None:
    await sql.execute("INSERT INTO processed_event (event_id, status) VALUES ('e-1', 'PROCESSING')")
    await sql.execute("UPDATE processed_event SET status = 'SUCCESS', processed_at = now() WHERE event_id = 'e-1'")
    assert await sql.fetchval("SELECT status FROM outbox_ledger WHERE processed_at IS NOT NULL") == "SUCCESS"
    await sql.execute("DELETE FROM processed_event WHERE event_id = 'e-1'")
    assert await sql.fetchval("SELECT count(*) FROM outbox_ledger") == 0
