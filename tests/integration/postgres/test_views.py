"""The view `outbox_event` and its compatibility views, also with a malformed payload."""

from datetime import timedelta

import asyncpg
import pytest

from pillarbox.core.fetch import Ready
from pillarbox.core.lane import Epochs, InFlightMessage, RelayRegistration, epochs_of
from pillarbox.core.message import Message
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Resolved, Retry
from pillarbox.core.payload import is_json
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.lookup import dead_letters, find_event
from tests.databases import Sql
from tests.integration.content_types import CONTENT_TYPES

COLUMNS = [
    "id",
    "event_id",
    "event_type",
    "aggregate_type",
    "aggregate_id",
    "key",
    "destination",
    "status",
    "payload",
    "payload_bytes",
    "content_type",
    "headers",
    "schema_version",
    "correlation_id",
    "causation_id",
    "trace_id",
    "occurred_at",
    "created_at",
    "published_at",
    "attempts",
    "retry_count",
    "last_error",
    "last_attempt_at",
    "next_retry_at",
    "locked_by",
    "locked_at",
]

# The documented queries of operators.
OPERATOR_QUERIES = {
    "recent events": """
        SELECT id, event_id, event_type, aggregate_id, status, retry_count, created_at, sent_at
        FROM outbox_events
        ORDER BY created_at DESC
        LIMIT 5;""",
    "what waits for a retry": """
        SELECT event_id, status, retry_count, next_retry_at, last_error
        FROM outbox_events
        WHERE status = 'PENDING';""",
    "health of the last hour": """
        SELECT
            COUNT(*) FILTER (WHERE published_at IS NULL) AS unpublished_count,
            COUNT(*) FILTER (WHERE retry_count > 0) AS retry_count,
            COUNT(*) FILTER (WHERE retry_count >= 5) AS max_retry_count,
            AVG(EXTRACT(EPOCH FROM (published_at - created_at))) AS avg_publish_latency_secs,
            MAX(retry_count) AS max_retry
        FROM event_outbox
        WHERE created_at > NOW() - INTERVAL '1 hour';""",
    "count by status": """
        SELECT status, COUNT(*)
        FROM outbox_event
        GROUP BY status;""",
    "failed events": """
        SELECT *
        FROM outbox_event
        WHERE status = 'FAILED'
        ORDER BY occurred_at DESC;""",
}


async def own_everything(store: PostgresStore) -> Epochs:
    await store.lanes.join(RelayRegistration(id="r1", name="relay-a"), lease=60)
    return epochs_of(await store.lanes.acquire("r1", limit=64))


async def read(store: PostgresStore, epochs: Epochs) -> list[Message]:
    return await store.messages.fetch(Ready(lanes=list(epochs)))


@pytest.fixture
async def one_of_each(store: PostgresStore, sql: Sql) -> Epochs:
    """A delivered, a retried, a dead and a fresh event, and one whose payload is not JSON."""
    epochs = await own_everything(store)
    for event_id in ("done", "tried", "dead", "fresh"):
        await sql.execute(
            "INSERT INTO outbox_message (event_id, event_type, payload, aggregate_type, aggregate_id)"
            " VALUES ($1, 'DocumentUploaded', '{\"n\": 1}', 'Document', $1)",
            event_id,
        )
    done, tried, dead, _ = await read(store, epochs)
    await store.writes.settle(
        epochs,
        [
            Decision(done, DELIVERED, "docs"),
            Decision(tried, Retry(delay=3600, error="connection refused"), "docs"),
            Decision(dead, Dead(error="no such queue"), "docs"),
        ],
    )
    await sql.execute("INSERT INTO outbox_message (event_id, event_type, payload) VALUES ('bad', 'a', '\\xff00fe')")
    return epochs


async def test_the_view_has_the_documented_columns(sql: Sql) -> None:
    statement = await sql.prepare("SELECT * FROM outbox_event")
    assert [attribute.name for attribute in statement.get_attributes()] == COLUMNS


@pytest.mark.usefixtures("one_of_each")
async def test_statuses_are_consistent(sql: Sql) -> None:
    rows = {row["event_id"]: row for row in await sql.fetch("SELECT * FROM outbox_event")}
    assert {name: row["status"] for name, row in rows.items()} == {
        "done": "PUBLISHED",
        "tried": "PENDING",
        "dead": "FAILED",
        "fresh": "PENDING",
        "bad": "PENDING",
    }
    assert rows["tried"]["retry_count"] == 1
    assert rows["tried"]["last_error"] == "connection refused"
    assert rows["tried"]["next_retry_at"] > rows["tried"]["created_at"]
    assert rows["done"]["published_at"] is not None
    assert (rows["dead"]["next_retry_at"], rows["dead"]["last_error"]) == (None, "no such queue")
    assert (rows["done"]["payload"], rows["bad"]["payload"]) == ('{"n": 1}', None)
    assert rows["bad"]["payload_bytes"] == b"\xff\x00\xfe"


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize("query", OPERATOR_QUERIES)
async def test_operator_queries_run_as_typed(query: str, sql: Sql) -> None:
    rows = await sql.fetch(OPERATOR_QUERIES[query])
    assert rows


@pytest.mark.usefixtures("one_of_each")
async def test_operator_queries_return_correct_results(sql: Sql) -> None:
    recent = {row["event_id"]: row for row in await sql.fetch(OPERATOR_QUERIES["recent events"])}
    assert (recent["done"]["status"], recent["done"]["retry_count"]) == ("SENT", 0)
    assert recent["done"]["sent_at"] is not None
    assert (recent["fresh"]["status"], recent["fresh"]["sent_at"]) == ("PENDING", None)
    [health] = await sql.fetch(OPERATOR_QUERIES["health of the last hour"])
    assert (health["unpublished_count"], health["retry_count"], health["max_retry"]) == (4, 2, 1)
    assert health["avg_publish_latency_secs"] >= 0
    by_status = {row["status"]: row["count"] for row in await sql.fetch(OPERATOR_QUERIES["count by status"])}
    assert by_status == {"PENDING": 3, "PUBLISHED": 1, "FAILED": 1}
    [failed] = await sql.fetch(OPERATOR_QUERIES["failed events"])
    assert failed["event_id"] == "dead"


async def test_a_failed_event_is_republished_by_the_documented_update(
    one_of_each: Epochs, store: PostgresStore, sql: Sql
) -> None:
    place = await sql.fetchval("SELECT id FROM outbox_events WHERE status = 'FAILED'")
    await sql.execute(
        f"""UPDATE outbox_events
        SET status = 'PENDING', retry_count = 0, last_error = NULL, next_retry_at = NULL
        WHERE id = '{place}';"""
    )
    assert "dead" in [message.event_id for message in await read(store, one_of_each)]
    assert await dead_letters(store) == []
    with pytest.raises(asyncpg.CheckViolationError, match="only FAILED"):
        await sql.execute("UPDATE outbox_events SET status = 'SENT' WHERE event_id = 'fresh'")


async def test_outbox_retry_retries_dead_letters_and_pending_events(
    one_of_each: Epochs, store: PostgresStore, sql: Sql
) -> None:
    assert await sql.fetchval("SELECT outbox_retry('dead')") == 1
    assert await sql.fetchval("SELECT outbox_retry('dead')") == 0
    assert await sql.fetchval("SELECT outbox_retry('tried')") == 1
    assert await sql.fetchval("SELECT outbox_retry('unknown')") == 0
    assert (await store.writes.execute_requests(one_of_each)).done == 1
    [row] = await find_event(store, "tried")
    assert (row.status, row.attempts) == ("PENDING", 0)
    assert await sql.fetchval("SELECT next_retry_at <= now() FROM outbox_event WHERE event_id = 'tried'")


async def test_a_message_in_flight_for_long_is_processing(store: PostgresStore, sql: Sql) -> None:
    epochs = await own_everything(store)
    await sql.execute("INSERT INTO outbox_message (event_id, event_type, payload) VALUES ('slow', 'a', '{}')")
    await read(store, epochs)
    await store.lanes.renew("r1", lease=60, in_flight=[InFlightMessage(event_id="slow", destination="", seconds=3)])
    row = await sql.fetchrow("SELECT status, locked_by, now() - locked_at AS age FROM outbox_event")
    assert row is not None
    assert (row["status"], row["locked_by"]) == ("PROCESSING", "relay-a r1")
    assert row["age"] >= timedelta(seconds=3)
    assert await sql.fetchval("SELECT status FROM outbox_events") == "PENDING"


async def test_in_an_outage_the_next_attempt_is_that_of_the_destination(store: PostgresStore, sql: Sql) -> None:
    epochs = await own_everything(store)
    await sql.execute(
        "INSERT INTO outbox_message (event_id, event_type, payload, destination) VALUES ('a', 'a', '{}', 'docs')"
    )
    [message] = await read(store, epochs)
    await store.writes.count_attempt(epochs, [Resolved(message, "docs")], error="broker down")
    await sql.execute(
        "INSERT INTO outbox_destination (destination, next_attempt_at) VALUES ('docs', '2030-01-01 00:00+00')"
    )
    row = await sql.fetchrow("SELECT status, attempts, retry_count, next_retry_at, last_error FROM outbox_event")
    assert row is not None
    assert (row["status"], row["attempts"], row["retry_count"], row["last_error"]) == ("PENDING", 0, 1, "broker down")
    assert row["next_retry_at"].year == 2030


PARALLEL = """
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0; SET max_parallel_workers_per_gather = 2; SET force_parallel_mode = on;
"""


async def test_the_view_works_with_parallel_plans(sql: Sql) -> None:
    """A malformed payload needs a subtransaction, which a parallel worker cannot start.

    A few rows do: where parallel plans are forced, PostgreSQL starts a worker for every call of the function.
    """
    await sql.execute(
        "INSERT INTO outbox_message (event_type, payload) "
        "SELECT 'a', CASE n % 2 WHEN 0 THEN '{}'::bytea ELSE 'no JSON' END FROM generate_series(1, 20) n"
    )
    if await sql.fetchval("SELECT current_setting('server_version_num')::int >= 160000"):
        await sql.execute(PARALLEL.replace("force_parallel_mode", "debug_parallel_query"))
    else:
        await sql.execute(PARALLEL)
    # Not fetchval: a portal with a row limit is never executed in parallel.
    assert len(await sql.fetch("SELECT payload FROM outbox_event")) == 20
    assert len(await sql.fetch("SELECT id FROM outbox_events WHERE payload IS NULL")) == 10


async def test_functions_that_catch_exceptions_are_parallel_unsafe(sql: Sql) -> None:
    offered = await sql.fetch(
        "SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'public'::regnamespace "
        "AND prosrc ~* 'exception\\s+when' AND proparallel <> 'u'"
    )
    assert offered == []


async def test_the_view_recognizes_json_as_is_json_does(sql: Sql) -> None:
    for content_type in CONTENT_TYPES:
        await sql.execute(
            "INSERT INTO outbox_message (event_id, event_type, payload, content_type) VALUES ($1, 't', '{}', $1)",
            content_type,
        )
    rows = await sql.fetch("SELECT event_id, payload IS NOT NULL FROM outbox_event")
    assert {row[0]: row[1] for row in rows} == {content_type: is_json(content_type) for content_type in CONTENT_TYPES}
