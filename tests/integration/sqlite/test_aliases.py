"""The compatibility views on SQLite: producers insert, operators move, archive and delete."""

import json
import sqlite3

import pytest

from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import Owner, ids

MOVE_TO_DLQ = (
    "INSERT INTO event_outbox_dlq SELECT * FROM event_outbox WHERE retry_count >= 1 AND published_at IS NULL",
    "DELETE FROM event_outbox WHERE retry_count >= 1 AND published_at IS NULL",
)


@pytest.fixture(autouse=True)
async def aliases(store: SqliteStore) -> None:
    await store.schema.apply(aliases=True)


def shown(sql: sqlite3.Connection, view: str) -> dict[str, str]:
    return dict(sql.execute(f"SELECT id, status FROM {view}").fetchall())


def insert(sql: sqlite3.Connection, *event_ids: str) -> None:
    rows = [(event_id, event_id) for event_id in event_ids]
    sql.executemany(
        "INSERT INTO event_outbox (event_id, event_type, aggregate_id, payload) VALUES (?, 'a', ?, '{}')", rows
    )


async def test_other_producers_insert_through_the_views(owner: Owner, sql: sqlite3.Connection) -> None:
    sql.execute(
        "INSERT INTO event_outbox"
        " (event_id, event_type, aggregate_type, aggregate_id, status, payload, metadata, created_at)"
        " VALUES ('a', 'ORDER_CREATED', 'CUSTOMER', 5, 'PENDING', '{\"n\": 1}', ?, '2026-02-13 10:30:00')",
        [json.dumps({"correlation_id": "c-1", "n": 7, "flag": True, "nothing": None})],
    )
    sql.execute(
        "INSERT INTO outbox_events (id, event_id, event_type, payload, status, retry_count)"
        " VALUES ('row', 'b', 'DocumentUploaded', '{}', 'PENDING', 0),"
        " ('row', 'c', 'DocumentUploaded', '{}', 'PENDING', 0)"
    )
    sql.execute("INSERT INTO outbox_integration_event (event_type, payload_json, status) SELECT 'd', '{}', 'NEW'")
    first, *others = await owner.ready()
    assert (first.aggregate_id, first.correlation_id, first.payload) == ("5", "c-1", b'{"n": 1}')
    assert first.headers == {"correlation_id": "c-1", "n": 7, "flag": True, "nothing": None}
    assert [message.event_type for message in others] == ["DocumentUploaded", "DocumentUploaded", "d"]
    assert ids(others[:2]) == ["b", "c"]
    assert len(others[2].event_id) == 36
    assert sql.execute("SELECT created_at FROM event_outbox WHERE id = 'a'").fetchone() == ("2026-02-13T10:30:00.000Z",)


async def test_a_duplicate_event_id_is_rejected_or_ignored(sql: sqlite3.Connection) -> None:
    insert(sql, "a")
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        insert(sql, "a")
    sql.execute("INSERT OR IGNORE INTO event_outbox (event_id, event_type, payload) VALUES ('a', 'b', '{}')")
    assert sql.execute("SELECT id, event_type FROM event_outbox").fetchall() == [("a", "a")]
    with pytest.raises(sqlite3.Error, match="only a new event"):
        sql.execute("INSERT OR IGNORE INTO event_outbox (event_type, payload, status) VALUES ('b', '{}', 'SENT')")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("event_outbox (event_type, payload, status) VALUES ('a', '{}', 'PROCESSED')", "status PENDING"),
        ("event_outbox (event_type, payload, published_at) VALUES ('a', '{}', '2026-01-01')", "only a new event"),
        ("event_outbox (event_type, payload, metadata) VALUES ('a', '{}', '[1]')", "metadata"),
        ("event_outbox (event_type, payload, metadata) VALUES ('a', '{}', 'no')", "metadata"),
        ("event_outbox (event_type, payload, created_at) VALUES ('a', '{}', 'no')", "created_at"),
        ("outbox_events (event_type, payload) VALUES ('a', 'no')", "not JSON"),
        ("outbox_events (event_type, payload, status) VALUES ('a', '{}', 'SENT')", "status PENDING"),
        ("outbox_events (event_type, payload, next_retry_at) VALUES ('a', '{}', 'no')", "next_retry_at"),
        ("outbox_integration_event (event_type, payload_json, status) VALUES ('a', '{}', 'PENDING')", "status NEW"),
        ("outbox_events (event_type, payload, extra) VALUES ('a', '{}', 1)", "extra"),
        ("event_outbox_dlq (event_id, destination) VALUES ('unknown', '')", "neither pending nor a dead letter"),
    ],
)
async def test_only_new_events_can_be_inserted(statement: str, words: str, sql: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.Error, match=words):
        sql.execute(f"INSERT INTO {statement}")
    assert shown(sql, "event_outbox") == {}


async def test_each_view_has_its_own_status_values(owner: Owner, sql: sqlite3.Connection) -> None:
    insert(sql, "done", "tried", "dead", "new", "deferred")
    done, tried, dead, _, deferred = await owner.ready()
    await owner.settle(DELIVERED, done)
    await owner.settle(Retry(delay=60, error="no"), tried)
    await owner.settle(Dead(error="no"), dead)
    await owner.count_attempt("broker down", deferred)
    words = {"done": "PROCESSED", "tried": "PENDING", "dead": "FAILED", "new": "PENDING", "deferred": "PENDING"}
    assert shown(sql, "event_outbox") == words
    assert shown(sql, "outbox_events") == words | {"done": "SENT"}
    assert shown(sql, "outbox_integration_event") == {
        "done": "DONE", "tried": "FAILED", "dead": "FAILED", "new": "NEW", "deferred": "FAILED",
    }  # fmt: skip
    attempts = dict(sql.execute("SELECT id, attempts FROM outbox_integration_event").fetchall())
    assert attempts == {"done": 0, "tried": 1, "dead": 1, "new": 0, "deferred": 1}
    sql.execute("UPDATE outbox_integration_event SET status = 'NEW' WHERE id = 'tried'")
    assert await owner.execute_requests() == 1
    assert ids(await owner.due()) == ["tried"]


async def test_dead_letters_are_moved_and_published_events_archived(owner: Owner, sql: sqlite3.Connection) -> None:
    insert(sql, "done", "stuck", "dead", "fresh")
    done, stuck, dead, _ = await owner.ready()
    await owner.settle(DELIVERED, done)
    await owner.settle(Retry(delay=60, error="no"), stuck)
    await owner.settle(Dead(error="no"), dead)
    for statement in MOVE_TO_DLQ:
        sql.execute(statement)
    assert await owner.execute_requests() == 1
    for statement in MOVE_TO_DLQ:
        sql.execute(statement)
    assert shown(sql, "event_outbox") == {"done": "PROCESSED", "fresh": "PENDING"}
    assert shown(sql, "event_outbox_dlq") == {"dead": "FAILED", "stuck": "FAILED"}
    sql.execute("UPDATE event_outbox_dlq SET status = 'PENDING' WHERE id = 'dead'")
    sql.execute("DELETE FROM event_outbox_dlq WHERE id = 'stuck'")
    assert shown(sql, "event_outbox") == {"done": "PROCESSED", "fresh": "PENDING", "dead": "PENDING"}
    assert sql.execute("SELECT count(*) FROM event_outbox_moved").fetchone() == (0,)

    sql.execute("INSERT INTO event_outbox_archive SELECT * FROM event_outbox WHERE published_at < '2999'")
    sql.execute("DELETE FROM event_outbox WHERE published_at < '2999'")
    assert shown(sql, "event_outbox_archive") == {"done": "PROCESSED"}
    assert "done" not in shown(sql, "event_outbox")
    with pytest.raises(sqlite3.IntegrityError, match="not published"):
        sql.execute("DELETE FROM outbox_events WHERE id = 'fresh'")


async def test_the_ledger_has_its_compatibility_view(sql: sqlite3.Connection) -> None:
    sql.execute("INSERT INTO processed_event (event_id, status) VALUES ('e-1', 'PROCESSING')")
    sql.execute("UPDATE processed_event SET status = 'SUCCESS', processed_at = '2026-11-16' WHERE event_id = 'e-1'")
    assert sql.execute("SELECT status FROM outbox_ledger WHERE processed_at IS NOT NULL").fetchall() == [("SUCCESS",)]
    sql.execute("DELETE FROM processed_event WHERE event_id = 'e-1'")
    assert sql.execute("SELECT count(*) FROM outbox_ledger").fetchone() == (0,)
