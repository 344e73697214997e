"""Sequence numbers: assigned by the database, shared by copies, never reused."""

import sqlite3

from pillarbox.core.event import Event
from pillarbox.core.outcome import DELIVERED, Dead
from pillarbox.record import Outbox
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import Owner, ids
from pillarbox.testing.lookup import dead_letters

INSERT = "INSERT INTO outbox_message (event_id, event_type, ordering_key, payload) VALUES (?, 't', 'k', '')"


async def test_the_sequence_continues_after_the_table_was_empty(owner: Owner, sql: sqlite3.Connection) -> None:
    last = 0
    for turn in range(3):
        sql.execute(INSERT, (f"e{turn}",))
        [message] = await owner.ready()
        assert message.id > last
        last = message.id
        await owner.settle(DELIVERED, message)


async def test_the_sequence_number_of_a_copy_is_not_reused(owner: Owner, sql: sqlite3.Connection) -> None:
    sql.execute(INSERT, ("whole",))
    [whole] = await owner.ready()
    await owner.split(whole, "x", "y", "z")
    sql.execute(INSERT, ("next",))
    *copies, following = await owner.ready()
    assert {copy.id for copy in copies} == {whole.id}
    assert following.id > whole.id
    await owner.settle(DELIVERED, following)
    assert sorted(copy.destination for copy in await owner.ready()) == ["x", "y", "z"]


async def test_a_copy_of_a_copy_keeps_the_sequence_number(owner: Owner, sql: sqlite3.Connection) -> None:
    sql.execute(INSERT, ("whole",))
    [whole] = await owner.ready()
    await owner.split(whole, "x")
    [x] = await owner.ready()
    await owner.split(x, "x1", "x2")
    assert [copy.id for copy in await owner.ready()] == [whole.id, whole.id]


async def test_retried_dead_letters_are_appended_in_their_old_order(
    store: SqliteStore, owner: Owner, sql: sqlite3.Connection
) -> None:
    for name in ("a", "b", "c"):
        sql.execute(INSERT, (name,))
    a, b, _ = await owner.ready()
    for message in (b, a):
        await owner.settle(Dead(error="no"), message)
    await store.admin.dead_letters.retry([dead_letter.id for dead_letter in await dead_letters(store)])
    messages = await owner.ready()
    assert ids(messages) == ["c", "a", "b"]
    assert messages[0].id < messages[1].id < messages[2].id
    assert sql.execute("SELECT count(*) FROM outbox_message WHERE shared_id IS NOT NULL").fetchone() == (0,)


async def test_a_lowered_limit_affects_neither_copies_nor_retries(store: SqliteStore, sql: sqlite3.Connection) -> None:
    sql.execute("INSERT INTO outbox_message (event_type, payload) VALUES ('t', zeroblob(5000)), ('t', zeroblob(5000))")
    path = sql.execute("PRAGMA database_list").fetchone()[2]
    strict = SqliteStore(path, max_payload=1000)
    try:
        await strict.schema.apply()
        owner = await Owner.of(strict)
        first, second = await owner.ready()
        assert (await owner.split(first, "x", "y")).count == 2
        await owner.settle(Dead(error="no"), second)
        [dead_letter] = await dead_letters(strict)
        assert await strict.admin.dead_letters.retry([dead_letter.id]) == 1
        assert len(await owner.ready()) == 3
    finally:
        await strict.aclose()


async def test_recorded_and_shell_events_share_one_sequence(owner: Owner, sql: sqlite3.Connection) -> None:
    outbox = Outbox()
    sql.execute("BEGIN")
    outbox.record(sql, Event("t", {}, event_id="recorded", key="k"))
    sql.execute(INSERT, ("typed",))
    sql.execute("COMMIT")
    assert ids(await owner.ready()) == ["recorded", "typed"]
