"""A row that cannot be decoded or settled becomes a dead letter and does not affect others."""

import sqlite3

import pytest

from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.admin.listing import EventFilter
from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.outcome import DELIVERED, Decision, Retry
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import Owner

REFUSED = {
    "the last row there can be": {"row_id": "9223372036854775807"},
    "a row far beyond the others": {"row_id": "4611686018427387904"},
    "a row before the first": {"row_id": "-1"},
    "a sequence number that is a word": {"shared_id": "'first'"},
    "the sequence number of another event": {"shared_id": "1"},
    "a dead letter of another event": {"shared_id": "-1"},
    "attempts below zero": {"attempts": "-1"},
    "more attempts than fit": {"attempts": "9223372036854775807"},
    "more deferrals than fit": {"deferrals": "1000000001"},
    "waiting without a key": {"held": "'waiting'"},
    "an error of bytes": {"last_error": "x'ff'"},
    "a failure in words": {"first_failed_at": "'yesterday'"},
    "an attempt in seconds": {"last_attempt_at": "1700000000"},
    "a destination with a NUL": {"destination": "'a' || char(0) || 'b'"},
    "a destination of bytes": {"destination": "CAST(x'61FF' AS TEXT)"},
    "a destination with half a character": {"destination": "CAST(x'61C3' AS TEXT)"},
    "a key of bytes": {"ordering_key": "CAST(x'80' AS TEXT)"},
    "a key with a surrogate": {"aggregate_id": "CAST(x'EDA080' AS TEXT)"},
    "a key with a character too long": {"aggregate_id": "'k'", "aggregate_type": "CAST(x'C080' AS TEXT)"},
    "a type of bytes": {"event_type": "CAST(x'FE' AS TEXT)"},
}


def insert(sql: sqlite3.Connection, event_id: str, **columns: str) -> None:
    row = {"event_id": f"'{event_id}'", "event_type": "'t'", "payload": "'{}'"} | columns
    sql.execute(f"INSERT INTO outbox_message ({', '.join(row)}) VALUES ({', '.join(row.values())})")


@pytest.mark.parametrize("columns", REFUSED.values(), ids=REFUSED.keys())
async def test_a_row_that_cannot_be_settled_is_rejected_by_the_insert(
    owner: Owner, sql: sqlite3.Connection, columns: dict[str, str]
) -> None:
    insert(sql, "first")
    with pytest.raises(sqlite3.IntegrityError, match="constraint failed"):
        insert(sql, "bad", **columns)
    insert(sql, "last")
    assert [message.event_id for message in await owner.ready()] == ["first", "last"]


@pytest.mark.parametrize("text", ["é", "\U0001f600", "\ufffd", "\ufffe", "\uffff", "a\u202eb"])
async def test_any_text_can_be_inserted(owner: Owner, sql: sqlite3.Connection, text: str) -> None:
    insert(sql, text, ordering_key=f"'{text}'", event_type=f"'{text}'")
    [message] = await owner.ready()
    assert (message.event_id, message.key, message.event_type) == (text, text, text)


async def test_invalid_texts_are_rejected_by_an_update(sql: sqlite3.Connection) -> None:
    insert(sql, "e")
    with pytest.raises(sqlite3.IntegrityError, match="UTF-8"):
        sql.execute("UPDATE outbox_message SET destination = CAST(x'FF' AS TEXT)")


async def test_invalid_times_are_listed_and_reported(owner: Owner, store: SqliteStore, sql: sqlite3.Connection) -> None:
    insert(sql, "bad")
    insert(sql, "good")
    sql.execute("PRAGMA ignore_check_constraints = ON")
    sql.execute("UPDATE outbox_message SET occurred_at = 'once', last_attempt_at = x'ff' WHERE row_id = 1")
    bad, good = await owner.ready()
    assert bad.fault is not None
    assert "occurred_at cannot be decoded" in bad.fault
    assert good.fault is None
    listed = await store.admin.events.list(EventFilter(), limit=10)
    assert {event.event_id for event in listed.events} == {"bad", "good"}
    assert [event.event_id for event in (await store.admin.events.show("bad")).events] == ["bad"]


async def test_a_row_that_cannot_be_settled_becomes_a_dead_letter(
    owner: Owner, store: SqliteStore, sql: sqlite3.Connection
) -> None:
    for number in range(20):
        insert(sql, f"e{number}", attempts="5" if number in (3, 17) else "0")
    sql.execute(
        "CREATE TRIGGER few BEFORE UPDATE ON outbox_message WHEN NEW.attempts > 5 "
        "BEGIN SELECT RAISE(ABORT, 'few attempts'); END"
    )
    messages = await owner.ready()
    settled = await store.writes.settle(owner.epochs, [Decision(m, Retry(delay=60, error="no"), "x") for m in messages])
    assert (settled.count, settled.lost) == (20, frozenset())
    listed = await store.admin.dead_letters.list(DeadLetterFilter(), limit=10)
    assert {dead_letter.event_id for dead_letter in listed.dead_letters} == {"e3", "e17"}
    assert all("few attempts" in dead_letter.error for dead_letter in listed.dead_letters)
    assert sql.execute("SELECT count(*) FROM outbox_message WHERE attempts = 1").fetchone() == (18,)


async def test_a_row_that_can_neither_be_settled_nor_dead_lettered_is_named(
    owner: Owner, store: SqliteStore, sql: sqlite3.Connection
) -> None:
    for number in range(9):
        insert(sql, f"e{number}")
    sql.execute(
        "CREATE TRIGGER stays BEFORE DELETE ON outbox_message WHEN OLD.event_id = 'e6' "
        "BEGIN SELECT RAISE(ABORT, 'e6 stays'); END"
    )
    messages = await owner.ready()
    with pytest.raises(RowsRefusedError, match="e6 stays") as refused:
        await store.writes.settle(owner.epochs, [Decision(m, DELIVERED, "x") for m in messages])
    assert refused.value.positions == {messages[6].position}
    assert sql.execute("SELECT count(*) FROM outbox_history").fetchone() == (8,)


@pytest.mark.parametrize("in_flight", [False, True])
async def test_a_rejected_operator_request_is_closed_with_the_reason(
    owner: Owner, store: SqliteStore, sql: sqlite3.Connection, in_flight: bool
) -> None:
    for number in range(4):
        insert(sql, f"e{number}", available_at="'2999-01-01T00:00:00.000Z'")
    sql.execute(
        "CREATE TRIGGER stays BEFORE UPDATE ON outbox_message WHEN OLD.event_id = 'e1' "
        "BEGIN SELECT RAISE(ABORT, 'e1 stays'); END"
    )
    await store.admin.requests.add("retry", [(f"e{number}", "") for number in range(4)])
    flying = [(1, "")] if in_flight else []
    assert (await store.writes.execute_requests(owner.epochs, in_flight=flying)).deferred == flying
    results = [result for (result,) in sql.execute("SELECT result FROM outbox_request ORDER BY request_id")]
    assert (results[0], results[2:]) == (None if in_flight else "done", ["done", "done"])
    assert "e1 stays" in results[1]


async def test_counters_stop_at_their_maximum(owner: Owner, sql: sqlite3.Connection) -> None:
    insert(sql, "e", attempts="1000000000", deferrals="1000000000")
    [message] = await owner.ready()
    assert (await owner.settle(Retry(delay=0, error="no"), message)).count == 1
    assert sql.execute("SELECT attempts, deferrals FROM outbox_message").fetchone() == (10**9, 10**9)
