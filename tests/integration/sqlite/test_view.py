"""The view `outbox_event`, and the documented queries of operators."""

import json
import sqlite3

import pytest

from pillarbox.core.lane import InFlightMessage
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.core.payload import is_json
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import LONG, Owner, ids
from pillarbox.testing.lookup import dead_letters, find_event
from tests.integration.content_types import CONTENT_TYPES

INSERT = "INSERT INTO outbox_message (event_id, event_type, aggregate_id, payload) VALUES (?, 't', ?, ?)"

COLUMNS = (
    "id, event_id, event_type, aggregate_type, aggregate_id, key, destination, status, payload, payload_bytes, "
    "content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, created_at, "
    "published_at, attempts, retry_count, last_error, last_attempt_at, next_retry_at, locked_by, locked_at"
)


@pytest.fixture
async def aliases(store: SqliteStore) -> None:
    await store.schema.apply(aliases=True)


@pytest.fixture
async def busy_day(aliases: None, owner: Owner, sql: sqlite3.Connection) -> Owner:
    for name in ("waiting", "published", "retried", "dead", "blocked"):
        sql.execute(INSERT, (name, name, json.dumps({"name": name})))
    _, published, retried, dead, blocked = await owner.ready()
    await owner.settle(DELIVERED, published)
    await owner.settle(Retry(delay=60, error="refused"), retried)
    await owner.settle(Dead(error="never"), dead)
    await owner.settle(Dead(error="stuck", block=True), blocked)
    return owner


async def test_the_view_has_the_documented_columns(store: SqliteStore, sql: sqlite3.Connection) -> None:
    assert ", ".join(column for column, *_ in sql.execute("SELECT * FROM outbox_event").description) == COLUMNS


async def test_events_can_be_counted_by_status(busy_day: Owner, sql: sqlite3.Connection) -> None:
    rows = sql.execute("SELECT status, COUNT(*)\nFROM outbox_event\nGROUP BY status;").fetchall()
    assert sorted(rows) == [("FAILED", 2), ("PENDING", 2), ("PUBLISHED", 1)]


async def test_failed_events_can_be_listed(busy_day: Owner, sql: sqlite3.Connection) -> None:
    rows = sql.execute(
        "SELECT event_id, last_error, next_retry_at FROM outbox_event WHERE status = 'FAILED' ORDER BY occurred_at DESC"
    ).fetchall()
    assert sorted(rows) == [("blocked", "stuck", None), ("dead", "never", None)]


async def test_the_newest_events_can_be_listed(busy_day: Owner, sql: sqlite3.Connection) -> None:
    rows = sql.execute(
        "SELECT id, event_id, event_type, aggregate_id, status, retry_count, created_at, sent_at "
        "FROM outbox_events ORDER BY created_at DESC LIMIT 5;"
    ).fetchall()
    reported = {row[1]: (row[4], row[5], row[7] is not None) for row in rows}
    assert reported == {
        "waiting": ("PENDING", 0, False),
        "published": ("SENT", 0, True),
        "retried": ("PENDING", 1, False),
        "dead": ("FAILED", 1, False),
        "blocked": ("FAILED", 1, False),
    }


async def test_pending_events_have_their_error(busy_day: Owner, sql: sqlite3.Connection) -> None:
    rows = sql.execute(
        "SELECT event_id, status, retry_count, next_retry_at, last_error FROM outbox_events WHERE status = 'PENDING';"
    ).fetchall()
    assert sorted((row[0], row[2], row[4]) for row in rows) == [("retried", 1, "refused"), ("waiting", 0, None)]


async def test_health_is_one_row(busy_day: Owner, sql: sqlite3.Connection) -> None:
    row = sql.execute(
        "SELECT COUNT(*) FILTER (WHERE published_at IS NULL), COUNT(*) FILTER (WHERE retry_count > 0), "
        "MAX(retry_count) FROM event_outbox WHERE created_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 hour')"
    ).fetchone()
    assert row == (4, 3, 1)


async def test_a_failed_event_can_be_reset_to_pending(busy_day: Owner, sql: sqlite3.Connection) -> None:
    again = (
        "UPDATE outbox_events SET status = 'PENDING', retry_count = 0, last_error = NULL, next_retry_at = NULL "
        "WHERE event_id = ?"
    )
    sql.execute(again, ("dead",))
    sql.execute(again, ("blocked",))
    assert ids(await busy_day.ready()) == ["waiting", "dead"]
    assert await busy_day.execute_requests() == 1
    assert ids(await busy_day.due()) == ["blocked"]
    assert await dead_letters(busy_day.store) == []
    audited = sql.execute("SELECT what, subject FROM outbox_audit ORDER BY audit_id").fetchall()
    assert audited == [("retry", "dead"), ("retry", "blocked")]


async def test_no_other_update_is_allowed(busy_day: Owner, sql: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="only FAILED to PENDING"):
        sql.execute("UPDATE outbox_events SET status = 'SENT' WHERE event_id = 'waiting'")
    with pytest.raises(sqlite3.IntegrityError, match="not published"):
        sql.execute("DELETE FROM event_outbox WHERE event_id = 'waiting'")
    with pytest.raises(sqlite3.OperationalError):
        sql.execute("DELETE FROM outbox_event")


async def test_published_events_can_be_deleted(busy_day: Owner, sql: sqlite3.Connection) -> None:
    sql.execute("DELETE FROM event_outbox WHERE published_at < '2999'")
    assert await find_event(busy_day.store, "published") == []
    assert sql.execute("SELECT count(*) FROM outbox_event").fetchone() == (4,)


async def test_compatibility_views_are_created_on_request_only(store: SqliteStore, sql: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        sql.execute("SELECT * FROM outbox_events")


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        (b'{"a": 1}', '{"a": 1}'),
        ('{"a": "é"}', '{"a": "é"}'),
        (b"{", None),
        (b"\x00\xff", None),
        (b'{"a": 1}\x00 and more', None),
        (b"", None),
    ],
)
async def test_a_payload_is_shown_as_json_or_not_at_all(
    store: SqliteStore, sql: sqlite3.Connection, payload: bytes | str, shown: str | None
) -> None:
    sql.execute(INSERT, ("a", None, payload))
    raw = payload.encode() if isinstance(payload, str) else payload
    assert sql.execute("SELECT payload, payload_bytes FROM outbox_event").fetchone() == (shown, raw)


async def test_a_message_in_flight_for_long_is_processing(store: SqliteStore, sql: sqlite3.Connection) -> None:
    owner = await Owner.of(store, name="relay-a")
    sql.execute(INSERT, ("a", None, ""))
    await store.lanes.renew(
        owner.relay, lease=LONG, in_flight=[InFlightMessage(event_id="a", destination="x", seconds=90)]
    )
    status, locked_by, seconds = sql.execute(
        "SELECT status, locked_by, (julianday('now') - julianday(locked_at)) * 86400 FROM outbox_event"
    ).fetchone()
    assert (status, locked_by) == ("PROCESSING", f"relay-a {owner.relay}")
    assert 89 < seconds < 150


async def test_in_an_outage_the_next_attempt_is_that_of_the_destination(owner: Owner, sql: sqlite3.Connection) -> None:
    sql.execute("INSERT INTO outbox_message (event_id, event_type, payload, destination) VALUES ('a', 't', '', 'x')")
    sql.execute(
        "INSERT INTO outbox_destination (destination, next_attempt_at) VALUES ('x', '2030-01-01T00:00:00.000Z')"
    )
    [row] = await find_event(owner.store, "a")
    assert row.next_retry_at is None
    await owner.count_attempt("refused", *await owner.ready())
    [row] = await find_event(owner.store, "a")
    assert row.next_retry_at is not None
    assert (row.next_retry_at.year, row.retry_count) == (2030, 1)


async def test_the_view_recognizes_json_as_is_json_does(store: SqliteStore, sql: sqlite3.Connection) -> None:
    for content_type in CONTENT_TYPES:
        sql.execute(
            "INSERT INTO outbox_message (event_id, event_type, payload, content_type) VALUES (?, 't', '{}', ?)",
            (content_type, content_type),
        )
    shown = dict(sql.execute("SELECT event_id, payload IS NOT NULL FROM outbox_event").fetchall())
    assert shown == {content_type: is_json(content_type) for content_type in CONTENT_TYPES}
