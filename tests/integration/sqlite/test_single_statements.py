"""A fetch is one statement, and so is a settlement without history."""

import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from pillarbox.core.message import Message
from pillarbox.core.outcome import DELIVERED, Decision
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.stores.sqlite.messages import TOGETHER
from pillarbox.testing.conformance.lane_owner import Owner

INSERT = "INSERT INTO outbox_message (event_id, event_type, payload, destination) VALUES (?, 't', ?, ?)"
LANE = 0


@pytest.fixture
async def lean(sqlite_template: Path, path: Path) -> AsyncIterator[SqliteStore]:
    """A store without history."""
    async with aclosing(SqliteStore(shutil.copy(sqlite_template, path), history=False)) as store:
        yield store


@pytest.fixture
def rows(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


async def statements(store: SqliteStore) -> list[str]:
    """The statements of the store from now on."""
    sent: list[str] = []
    await store._connection.ask(lambda db: db.set_trace_callback(sent.append))
    return sent


def delivered(*messages: Message) -> list[Decision]:
    return [Decision(message, DELIVERED, "x") for message in messages]


async def test_a_fetch_and_a_settlement_are_one_statement_each(lean: SqliteStore, rows: sqlite3.Connection) -> None:
    owner = await Owner.of(lean)
    rows.executemany(INSERT, [(f"e{number}", b"{}", "") for number in range(9)])
    first, *others = await owner.ready()
    await lean.writes.settle(owner.epochs, delivered(first))
    sent = await statements(lean)
    assert [message.event_id for message in await owner.ready()] == [message.event_id for message in others]
    assert len(sent) == 1
    settled = await lean.writes.settle(owner.epochs, delivered(*others))
    assert (settled.count, settled.lost) == (8, frozenset())
    assert len(sent) == 2
    assert rows.execute("SELECT count(*) FROM outbox_message").fetchone() == (0,)


async def test_a_lost_lane_is_not_written(lean: SqliteStore, rows: sqlite3.Connection) -> None:
    owner = await Owner.of(lean)
    rows.executemany(INSERT, [("a", b"", ""), ("b", b"", ""), ("c", b"", "")])
    first, second, third = await owner.ready()
    await lean.writes.settle(owner.epochs, delivered(first))
    successor = await owner.taken_over()
    settled = await lean.writes.settle(owner.epochs, delivered(second))
    assert (settled.count, settled.lost) == (0, frozenset({LANE}))
    assert rows.execute("SELECT event_id FROM outbox_message").fetchall() == [("b",), ("c",)]
    assert rows.execute("SELECT crashes FROM outbox_lane").fetchone() == (1,)
    assert (await lean.writes.settle(successor.epochs, delivered(third))).count == 1
    assert rows.execute("SELECT crashes FROM outbox_lane").fetchone() == (0,)


async def test_a_settlement_deletes_only_its_own_messages(lean: SqliteStore, rows: sqlite3.Connection) -> None:
    owner = await Owner.of(lean)
    rows.executemany(INSERT, [("a", b"", ""), ("b", b"", 'ö "x"'), ("c", b"", "")])
    rows.execute(
        "INSERT INTO outbox_message (event_id, event_type, payload, destination, shared_id)"
        " VALUES ('c', 't', x'', 'y', 3)"
    )
    first, second, third, copy = await owner.ready()
    assert third.id == copy.id
    await lean.writes.settle(owner.epochs, delivered(first))
    gone = delivered(first, second._replace(destination="elsewhere"))
    assert (await lean.writes.settle(owner.epochs, gone)).count == 0
    assert (await lean.writes.settle(owner.epochs, delivered(second, copy))).count == 2
    assert await owner.ready() == [third]


async def test_history_rows_have_destination_and_duration(
    sqlite_template: Path, path: Path, rows: sqlite3.Connection
) -> None:
    async with aclosing(SqliteStore(shutil.copy(sqlite_template, path), ledger=True)) as store:
        owner = await Owner.of(store)
        rows.executemany(INSERT, [(name, b"", "") for name in "abcd"])
        answers = [("x", 0.25), ("y", 0.25), ("x", None), ("x", 1e-05)]
        decisions = [
            Decision(message, DELIVERED, *answer) for message, answer in zip(await owner.ready(), answers, strict=True)
        ]
        assert (await store.writes.settle({LANE: owner.epochs[LANE] + 1}, decisions)).lost == {LANE}
        assert rows.execute("SELECT count(*) FROM outbox_history").fetchone() == (0,)
        assert (await store.writes.settle(owner.epochs, decisions)).count == 4
        kept = rows.execute("SELECT event_id, destination, seconds FROM outbox_history ORDER BY event_id").fetchall()
        noted = rows.execute("SELECT event_id, destination, status FROM outbox_ledger ORDER BY event_id").fetchall()
    assert kept == [(name, *answer) for name, answer in zip("abcd", answers, strict=True)]
    assert noted == [(name, destination, "SUCCESS") for name, (destination, _) in zip("abcd", answers, strict=True)]


async def test_a_row_that_cannot_be_deleted_is_named_and_the_others_are_settled(
    lean: SqliteStore, rows: sqlite3.Connection
) -> None:
    owner = await Owner.of(lean)
    rows.executemany(INSERT, [(f"e{number}", b"", "") for number in range(9)])
    rows.execute(
        "CREATE TRIGGER noted AFTER DELETE ON outbox_message WHEN OLD.event_id = 'e6' AND NOT EXISTS "
        "(SELECT 1 FROM outbox_dead_letter WHERE event_id = 'e6') BEGIN SELECT RAISE(ABORT, 'e6 is not noted'); END"
    )
    first, *others = await owner.ready()
    await lean.writes.settle(owner.epochs, delivered(first))
    assert (await lean.writes.settle(owner.epochs, delivered(*others))).count == 8
    assert rows.execute("SELECT event_id FROM outbox_dead_letter").fetchall() == [("e6",)]


async def test_large_messages_are_fetched_row_by_row(owner: Owner, sql: sqlite3.Connection) -> None:
    payloads = [bytes([number]) * (TOGETHER // 4) for number in range(6)]
    sql.executemany(INSERT, [(f"e{number}", payload, "") for number, payload in enumerate(payloads)])
    assert [message.payload for message in await owner.ready()] == payloads
    assert [message.payload for message in await owner.ready(limit=2)] == payloads[:2]
    cut = await owner.ready(max_bytes=TOGETHER)
    assert [message.payload for message in cut] == payloads[:3]
    assert cut.left_out is not None
    assert cut.left_out.event_id == "e3"


async def test_payloads_of_any_bytes_round_trip(owner: Owner, sql: sqlite3.Connection) -> None:
    payloads = [b"", b"\x00", bytes(range(256)), b"", '"ö"'.encode(), b"\xff\xfe"]
    sql.executemany(INSERT, [(f"e{number}", payload, "") for number, payload in enumerate(payloads)])
    sql.execute(INSERT, ("text", '"ö"', ""))
    assert [message.payload for message in await owner.ready()] == [*payloads, '"ö"'.encode()]


async def test_payloads_of_a_database_in_utf_16_are_not_converted(path: Path) -> None:
    payloads = [b"odd", b"\x00\xd8\x00\xd8", bytes(range(256))]
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        sql.execute("PRAGMA encoding = 'UTF-16'")
        sql.execute("CREATE TABLE first (id)")
        async with aclosing(SqliteStore(path)) as store:
            await store.schema.apply()
            sql.executemany(INSERT, [(f"é{number}", payload, "") for number, payload in enumerate(payloads)])
            found = await (await Owner.of(store)).ready()
    assert [(message.event_id, message.payload) for message in found] == [
        (f"é{number}", payload) for number, payload in enumerate(payloads)
    ]
