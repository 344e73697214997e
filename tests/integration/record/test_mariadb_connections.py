"""Connections of MariaDB's drivers: what is rejected, pools, large batches, and what passes to the caller."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import asyncmy
import pymysql
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from pillarbox import DuplicateEventError, Event, Inbox, NotInTransactionError, Outbox, RecordError
from pillarbox.core.errors import InvalidConnectionError
from pillarbox.core.statistics import ConsumerStatistics
from pillarbox.dialects import mariadb
from pillarbox.testing.waiting import eventually
from tests.integration.mariadb.session import Session
from tests.integration.record.conftest import committed_ids
from tests.integration.record.mariadb_ways import (
    asyncmy_connection,
    connect_arguments,
    mysqlclient_connection,
    pymysql_connection,
)
from tests.integration.record.way import Way
from tests.integration.record.ways import MARIADB

EVENT = Event("order.placed", {"id": 1}, event_id="evt-001")
each_driver = pytest.mark.parametrize("connect", [pymysql_connection, mysqlclient_connection])
Connect = Callable[..., AbstractContextManager[Any]]


CHARACTER_SETS = pytest.mark.parametrize(
    "options",
    [{"charset": "utf8mb3"}, {"charset": "latin1"}, {"charset": "gbk"}, {"init_command": "SET NAMES latin1"}],
    ids=["utf8mb3", "latin1", "gbk", "SET NAMES"],
)


@each_driver
@CHARACTER_SETS
@pytest.mark.parametrize("sql_mode", ["STRICT_TRANS_TABLES", "NO_ENGINE_SUBSTITUTION"])
def test_the_character_set_of_the_session_changes_no_text(
    mariadb_url: str, connect: Connect, options: dict[str, str], sql_mode: str
) -> None:
    text = "😀 é 南'\""
    event = Event("t", {"text": text}, event_id=text, key=text, headers={"h": text}, correlation_id=text)
    with connect(mariadb_url, **options, sql_mode=sql_mode) as connection:
        Outbox().record(connection, event, Event("t", {}, event_id="ascii"))
        connection.commit()
    with pymysql_connection(mariadb_url) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT event_id, ordering_key, json_value(headers, '$.h'), correlation_id,"
            " json_value(CONVERT(payload USING utf8mb4), '$.text') FROM outbox_message ORDER BY id LIMIT 1"
        )
        assert cursor.fetchall() == ((text,) * 5,)
    assert committed_ids(mariadb_url) == [text, "ascii"]


@each_driver
@CHARACTER_SETS
def test_the_inbox_tells_events_apart_whatever_the_character_set_of_the_session(
    mariadb_url: str, connect: Connect, options: dict[str, str]
) -> None:
    with connect(mariadb_url, **options) as connection:
        assert [Inbox().admit(connection, "bücher", event_id) for event_id in ("😀", "😁", "😀")] == [True, True, False]
        Inbox().add_statistics(connection, ConsumerStatistics("bücher", failures=1, last_error="😀"))
        connection.commit()
    with pymysql_connection(mariadb_url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT consumer, last_error FROM outbox_inbox_statistics")
        assert cursor.fetchall() == (("bücher", "😀"),)


async def test_asyncmy_without_backslash_escapes_is_rejected(mariadb_url: str) -> None:
    """It would write the backslashes of its own escapes into the payload."""
    async with asyncmy_connection(mariadb_url, sql_mode="NO_BACKSLASH_ESCAPES") as connection:
        with pytest.raises(InvalidConnectionError, match="NO_BACKSLASH_ESCAPES"):
            await Outbox().arecord(connection, EVENT)
    engine = create_async_engine(
        mariadb_url.replace("mariadb://", "mysql+asyncmy://"), connect_args={"sql_mode": "NO_BACKSLASH_ESCAPES"}
    )
    async with engine.connect() as connection:
        with pytest.raises(InvalidConnectionError, match="NO_BACKSLASH_ESCAPES"):
            await Outbox().arecord(connection, EVENT)
    await engine.dispose()


@each_driver
async def test_a_cursor_is_rejected_with_advice(mariadb_url: str, connect: Connect) -> None:
    with (
        connect(mariadb_url) as connection,
        connection.cursor() as cursor,
        pytest.raises(RecordError, match=r"the cursor's `\.connection`"),
    ):
        Outbox().record(cursor, EVENT)
    async with asyncmy_connection(mariadb_url) as awaited, awaited.cursor() as awaited_cursor:
        with pytest.raises(RecordError, match=r"the cursor's `\.connection`"):
            await Outbox().arecord(awaited_cursor, EVENT)


@each_driver
async def test_a_closed_connection_is_rejected(mariadb_url: str, connect: Connect) -> None:
    with connect(mariadb_url) as connection:
        pass
    with pytest.raises(RecordError, match="closed"):
        Outbox().record(connection, EVENT)
    async with asyncmy_connection(mariadb_url) as awaited:
        pass
    with pytest.raises(RecordError, match="closed"):
        await Outbox().arecord(awaited, EVENT)


async def test_a_pool_records_in_a_transaction_of_its_own(mariadb_url: str) -> None:
    async with asyncmy.create_pool(**connect_arguments(mariadb_url), minsize=1, maxsize=1) as pool:
        await Outbox().arecord(pool, EVENT)
        assert committed_ids(mariadb_url) == ["evt-001"]
        with pytest.raises(RecordError):
            await Outbox().arecord(pool, EVENT)
        await Outbox().arecord(pool, Event("order.paid", {}, event_id="evt-002"))
    assert committed_ids(mariadb_url) == ["evt-001", "evt-002"]


async def test_a_cancelled_record_in_a_pool_stays_cancelled(mariadb_url: str) -> None:
    """It neither raises the error of a rollback, nor leaves its transaction in the pool."""
    async with (
        asyncmy.create_pool(**connect_arguments(mariadb_url), minsize=1, maxsize=1) as pool,
        Session(mariadb_url) as other,
    ):
        await other.execute("LOCK TABLES outbox_message READ")
        recording = asyncio.create_task(Outbox().arecord(pool, EVENT))
        await eventually(partial(waits_for_the_table, other))
        recording.cancel()
        with pytest.raises(asyncio.CancelledError):
            await recording
        await other.execute("UNLOCK TABLES")
        await Outbox().arecord(pool, Event("order.paid", {}, event_id="evt-002"))
    assert committed_ids(mariadb_url)[-1:] == ["evt-002"]


async def waits_for_the_table(session: Session) -> bool:
    waiting = "SELECT count(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table%%'"
    return bool(await session.value(waiting))


@each_driver
async def test_a_commit_ends_the_transaction_of_an_autocommit_connection(mariadb_url: str, connect: Connect) -> None:
    with connect(mariadb_url, autocommit=True) as connection:
        connection.begin()
        Outbox().record(connection, EVENT)
        connection.commit()
        with pytest.raises(NotInTransactionError):
            Outbox().record(connection, Event("order.paid", {}))
        with pytest.raises(NotInTransactionError):
            Inbox().admit(connection, "billing", "evt-001")
    assert committed_ids(mariadb_url) == ["evt-001"]


@each_driver
def test_more_than_one_packet_of_events_is_recorded_in_order(mariadb_url: str, connect: Connect) -> None:
    body = b"'\\\x00" * (mariadb.PACKET // 9)
    events = [Event("large", body, event_id=f"e{n}") for n in range(9)]
    outbox = Outbox(max_payload="16 MiB")
    with connect(mariadb_url) as connection:
        outbox.record(connection, *events)
        connection.commit()
    assert committed_ids(mariadb_url) == [f"e{n}" for n in range(9)]


def large_events(*ids: str) -> list[Event]:
    """Events of which each needs an INSERT of its own."""
    return [Event("large", b"x" * (mariadb.PACKET - 1024), event_id=event_id) for event_id in ids]


@pytest.mark.parametrize("way", MARIADB, ids=str)
async def test_more_than_one_packet_of_events_is_recorded_completely_or_not_at_all(way: Way, mariadb_url: str) -> None:
    outbox = Outbox(max_payload="16 MiB")
    async with way.transaction(mariadb_url) as connection:
        await way.record(outbox, connection, EVENT)
        with pytest.raises(DuplicateEventError):
            await way.record(outbox, connection, *large_events("part-1", "evt-001"))
        await way.record(outbox, connection, Event("order.paid", {}, event_id="evt-002"))
    assert committed_ids(mariadb_url) == ["evt-001", "evt-002"]


async def test_a_deadlock_between_parts_passes_as_the_driver_raised_it(mariadb_url: str) -> None:
    """The server has rolled back the whole transaction, and with it the savepoint of the parts."""
    async with Session(mariadb_url) as sql:
        await sql.execute("BEGIN")
        await sql.execute("INSERT INTO outbox_message (event_id, event_type, payload) VALUES ('part-2', 't', 'x')")
        # The server rolls back the transaction that has changed less: this one has more rows.
        for n in range(100):
            await sql.execute(f"INSERT INTO outbox_message (event_id, event_type, payload) VALUES ('m{n}', 't', 'x')")
        with pymysql_connection(mariadb_url) as connection:
            recording = asyncio.create_task(
                asyncio.to_thread(
                    Outbox(max_payload="16 MiB").record, connection, *large_events("part-1", "part-2", "part-3")
                )
            )
            await eventually(sql.waits_for_a_lock)
            await sql.execute("INSERT INTO outbox_message (event_id, event_type, payload) VALUES ('part-1', 't', 'x')")
            with pytest.raises(pymysql.err.OperationalError, match="Deadlock"):
                await recording
        await sql.execute("COMMIT")


@each_driver
async def test_a_deadlock_passes_as_the_driver_raised_it(mariadb_url: str, connect: Connect) -> None:
    """Callers repeat their transaction on exactly this error."""
    async with Session(mariadb_url) as sql:
        await sql.execute("SET innodb_lock_wait_timeout = 1")
        await sql.execute("BEGIN")
        await sql.execute("INSERT INTO outbox_message (event_id, event_type, payload) VALUES ('evt-001', 't', 'x')")
        with connect(mariadb_url, init_command="SET innodb_lock_wait_timeout = 1") as connection:
            with pytest.raises(connection.OperationalError, match="Lock wait timeout"):
                Outbox().record(connection, EVENT)
            connection.rollback()
        await sql.execute("ROLLBACK")


@each_driver
def test_a_constraint_of_the_table_is_an_error_without_the_row(mariadb_url: str, connect: Connect) -> None:
    with connect(mariadb_url) as connection:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE outbox_message ADD CONSTRAINT small_ck CHECK (octet_length(payload) < 10)")
        with pytest.raises(RecordError, match=r"the table rejects an event.*small_ck") as raised:
            Outbox().record(connection, Event("a", {"secret": "canary" * 10}))
    assert "canary" not in str(raised.value) + repr(raised.value.__cause__)
