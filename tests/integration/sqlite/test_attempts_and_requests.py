"""Rows for operators: failed attempts, requests with their operator, and the first failure."""

import sqlite3

from pillarbox.core.message import Held
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.core.store import Retention
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.lookup import dead_letters

INSERT = "INSERT INTO outbox_message (event_id, event_type, payload) VALUES (?, 't', '')"


async def test_every_failed_send_is_stored_with_its_destination(owner: Owner, sql: sqlite3.Connection) -> None:
    sql.execute(INSERT, ("a",))
    await owner.settle(Retry(delay=0, error="one"), *await owner.ready(), to="x")
    await owner.settle(Retry(delay=0, error="two", counted=False), *await owner.due())
    await owner.settle(Dead(error="three"), *await owner.due())
    attempts = sql.execute("SELECT event_id, destination, attempt, counted, error FROM outbox_attempt").fetchall()
    assert attempts == [("a", "x", 1, 1, "one"), ("a", "x", 2, 0, "two"), ("a", "x", 3, 1, "three")]


async def test_a_message_that_was_not_sent_has_no_attempt(owner: Owner, sql: sqlite3.Connection) -> None:
    sql.execute(INSERT, ("a",))
    sql.execute(INSERT, ("b",))
    a, b = await owner.ready()
    await owner.settle(DELIVERED, a)
    await owner.settle(Dead(error="no route", counted=False), b)
    assert sql.execute("SELECT count(*) FROM outbox_attempt").fetchone() == (0,)


async def test_the_time_of_the_first_failure_is_kept(owner: Owner, sql: sqlite3.Connection) -> None:
    sql.execute(INSERT, ("a",))
    await owner.settle(Retry(delay=0, error="one"), *await owner.ready())
    (first,) = sql.execute("SELECT first_failed_at FROM outbox_message").fetchone()
    await owner.settle(Retry(delay=0, error="two"), *await owner.due())
    await owner.settle(Dead(error="three"), *await owner.due())
    assert sql.execute("SELECT first_failed_at FROM outbox_dead_letter").fetchone() == (first,)


async def test_requests_have_their_result_and_operator(
    store: SqliteStore, owner: Owner, sql: sqlite3.Connection
) -> None:
    sql.execute(INSERT, ("a",))
    sql.execute(INSERT, ("b",))
    await store.admin.requests.add("reschedule", [("a", "")], delay=60, by="ann")
    await store.admin.requests.add("discard", [("b", "")], by="ben")
    await store.admin.requests.add("retry", [("b", "")], by="cat")
    assert await owner.execute_requests() == 3
    done = sql.execute("SELECT requested_by, result, done_at IS NOT NULL FROM outbox_request").fetchall()
    assert done == [("ann", "done", 1), ("ben", "done", 1), ("cat", "not found", 1)]
    audited = sql.execute("SELECT who, what, subject FROM outbox_audit").fetchall()
    assert audited == [("ann", "reschedule", "a"), ("ben", "discard", "b")]


async def test_a_rescheduled_message_blocks_its_key_meanwhile(store: SqliteStore, sql: sqlite3.Connection) -> None:
    owner = await Owner.of(store)
    for name in ("a", "b"):
        sql.execute(
            "INSERT INTO outbox_message (event_id, event_type, ordering_key, payload) VALUES (?, 't', 'k', '')", (name,)
        )
    await store.admin.requests.add("reschedule", [("a", "")], delay=60)
    await owner.execute_requests()
    [b] = await owner.ready()
    assert (b.event_id, b.must_wait) == ("b", True)


async def test_retried_and_discarded_dead_letters_have_their_operator(
    store: SqliteStore, owner: Owner, sql: sqlite3.Connection
) -> None:
    for name in ("a", "b"):
        sql.execute(INSERT, (name,))
    await owner.settle(Dead(error="no"), *await owner.ready())
    b, a = await dead_letters(store)
    await store.admin.dead_letters.retry([a.id], by="ann")
    await store.admin.dead_letters.discard([b.id, a.id], by="ben")
    audited = sql.execute("SELECT who, what, subject FROM outbox_audit").fetchall()
    assert audited == [("ann", "retry", "a"), ("ben", "discard", "b")]


async def test_a_delay_beyond_the_calendar_is_limited_to_its_end(owner: Owner, sql: sqlite3.Connection) -> None:
    sql.execute(INSERT, ("a",))
    await owner.settle(Retry(delay=1e15, error="no"), *await owner.ready())
    assert sql.execute("SELECT available_at FROM outbox_message").fetchone() == ("9999-12-31T23:59:59.999Z",)
    assert await owner.due() == []


async def test_a_parked_message_keeps_its_time(owner: Owner, sql: sqlite3.Connection) -> None:
    due = "2020-01-01T00:00:00.000Z"
    sql.execute("INSERT INTO outbox_message (event_type, payload, available_at) VALUES ('t', '', ?)", (due,))
    await owner.hold(Held.PARKED, *await owner.due(), to="x")
    assert sql.execute("SELECT held, available_at, destination FROM outbox_message").fetchone() == ("parked", due, "x")


async def test_attempts_are_pruned_only_when_neither_history_nor_dead_letters_need_them(
    store: SqliteStore, owner: Owner, sql: sqlite3.Connection
) -> None:
    sql.execute(INSERT, ("a",))
    await owner.settle(Retry(delay=60, error="no"), *await owner.ready())
    assert await store.pruning.prune(Retention(history=0)) == 0
    assert await store.pruning.prune(Retention(history=0, dead=3600)) == 0
    assert await store.pruning.prune(Retention(history=0, dead=0)) == 1
    assert sql.execute("SELECT count(*) FROM outbox_message").fetchone() == (1,)
