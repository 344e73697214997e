"""The search for low-water marks fails, or the server does: no fetch fails because of it, and none hides an event."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress

import asyncpg
import pytest

from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.fetch import Ready
from pillarbox.core.message import Message
from pillarbox.stores.postgres import PostgresStore, low_water_marks
from pillarbox.stores.postgres.low_water_marks import LowWaterMarks
from pillarbox.testing.waiting import eventually
from tests.databases import Sql, make_template
from tests.integration.postgres.random_walk import LANES, RECORD
from tests.servers.availability import available
from tests.servers.postgres import PostgresServer

READY = Ready(lanes=LANES)
DELIVERED = 1000
LIMIT = 0.1
BLOCKED = "SELECT nextval('public.searches'), pg_advisory_lock(7)"
TOO_WIDE = """
SELECT f.* FROM (SELECT CASE WHEN max(w.last - w.first) >= 200 THEN pg_advisory_lock(7)::text END
                 FROM unnest($2::text::bigint[], $3::text::bigint[]) AS w(first, last)) AS slow CROSS JOIN ({}) AS f
"""
DELIVER_MANY = f"""
INSERT INTO outbox_message (event_type, payload, ordering_key)
SELECT 'moved', '', 'hot' FROM generate_series(1, {DELIVERED});
DELETE FROM outbox_message
"""


@pytest.fixture
def marks(store: PostgresStore) -> LowWaterMarks:
    """The marks of a store whose fetches all count as slow."""
    found = store.messages.low_water_marks
    found.slow, found._limit = -1, LIMIT
    return found


@pytest.fixture
async def blocked(other_session: Sql) -> AsyncIterator[None]:
    """BLOCKED waits until the server cancels it, and so does TOO_WIDE if it scans more than 200 sequences of a lane."""
    await other_session.execute("CREATE SEQUENCE searches")
    await other_session.execute("SELECT pg_advisory_lock(7)")
    yield
    await other_session.execute("SELECT pg_advisory_unlock(7)")


def lowest(marks: LowWaterMarks) -> int:
    return min(marks._marks.get(lane, 0) for lane in LANES)


async def fetched(store: PostgresStore) -> list[str]:
    return [message.event_id for message in await store.messages.fetch(READY)]


@pytest.mark.parametrize(
    ("statement", "blocking"),
    [("_find_writers", BLOCKED), ("_find_marks", f"{BLOCKED}, $1::text, $2::text, $3::text")],
)
@pytest.mark.usefixtures("blocked")
async def test_a_search_that_fails_delays_one_fetch_and_fails_none(
    store: PostgresStore,
    sql: Sql,
    marks: LowWaterMarks,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    blocking: str,
) -> None:
    monkeypatch.setattr(low_water_marks, "SMALL_SHARE", math.inf)  # the pause after a failure
    monkeypatch.setattr(marks, statement, blocking)
    await sql.execute(RECORD, "event", "key")
    searches: list[int | None] = []
    for _ in range(4):
        assert await fetched(store) == ["event"]
        searches.append(await sql.fetchval("SELECT pg_sequence_last_value('searches')"))
    assert searches[0] is None
    assert searches[1] is not None
    assert searches[1:] == [searches[1]] * 3


@pytest.mark.usefixtures("blocked")
async def test_a_check_that_fails_delays_one_fetch_and_fails_none(
    store: PostgresStore, sql: Sql, marks: LowWaterMarks, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sql.execute(RECORD, "event", "key")
    await marks.search(LANES)
    monkeypatch.setattr(low_water_marks, "SMALL_SHARE", math.inf)
    monkeypatch.setattr(marks, "_find_marks", f"{BLOCKED}, $1::text, $2::text, $3::text")
    monkeypatch.setattr(marks, "_next_search", math.inf)
    monkeypatch.setattr(marks, "_next_check", 0.0)
    for _ in range(3):
        assert await fetched(store) == ["event"]
        assert await sql.fetchval("SELECT pg_sequence_last_value('searches')") == 1
    assert lowest(marks) == 1


@pytest.mark.usefixtures("blocked")
async def test_a_lane_of_more_rows_than_a_statement_may_scan_is_searched_in_parts(
    sql: Sql, marks: LowWaterMarks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "_find_marks", TOO_WIDE.format(marks._find_marks))
    await sql.execute(DELIVER_MANY)

    async def is_found() -> bool:
        await marks.search(LANES)
        return lowest(marks) == DELIVERED + 1

    await eventually(is_found)


@pytest.mark.usefixtures("blocked")
async def test_a_lane_of_more_rows_than_a_statement_may_scan_is_checked_in_parts(
    store: PostgresStore, sql: Sql, marks: LowWaterMarks, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sql.execute(DELIVER_MANY)
    await sql.execute(RECORD, "held", "key")
    await sql.execute("UPDATE outbox_message SET held = 'parked'")
    await sql.execute(
        DELIVER_MANY.replace("DELETE FROM outbox_message", "DELETE FROM outbox_message WHERE held IS NULL")
    )

    async def is_found() -> bool:
        await marks.search(LANES)
        return lowest(marks) == 2 * DELIVERED + 2

    await eventually(is_found)
    monkeypatch.setattr(marks, "_find_marks", TOO_WIDE.format(marks._find_marks))
    monkeypatch.setattr(marks, "_next_search", math.inf)
    monkeypatch.setattr(marks, "_next_check", math.inf)
    await sql.execute("UPDATE outbox_message SET held = NULL")
    assert await fetched(store) == []

    async def is_dropped() -> bool:
        await marks.check()
        return lowest(marks) == 0

    await eventually(is_dropped)
    assert await fetched(store) == ["held"]


async def test_sequences_whose_rows_are_gone_are_passed_quickly(sql: Sql, marks: LowWaterMarks) -> None:
    await sql.execute("SELECT setval(pg_get_serial_sequence('outbox_message', 'id'), 1000000000000000)")

    async def is_found() -> bool:
        await marks.search(LANES)
        return lowest(marks) == 1_000_000_000_000_001

    await eventually(is_found)


async def test_a_table_that_is_missing_for_a_moment_does_not_end_the_search(
    store: PostgresStore, sql: Sql, marks: LowWaterMarks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(low_water_marks, "FORBIDDEN_FOR", math.inf)
    await sql.execute(RECORD, "event", "key")
    await sql.execute("ALTER TABLE outbox_message RENAME TO renamed")
    await marks.search(LANES)
    assert marks._next_search < math.inf
    await sql.execute("ALTER TABLE renamed RENAME TO outbox_message")
    await marks.search(LANES)
    assert lowest(marks) == 1
    assert await fetched(store) == ["event"]


async def test_no_event_is_hidden_after_a_crash_of_the_server() -> None:
    """A backend is killed: all sessions end and the server recovers, but its process and its files are the same."""
    with available(lambda: PostgresServer(durable=False)) as server:
        url = server.url(await make_template(server))
        async with aclosing(PostgresStore(url)) as store:
            marks = store.messages.low_water_marks
            sql = await asyncpg.connect(url)
            for number in range(5):
                await sql.execute(RECORD, f"before-{number}", "key")
            await sql.execute("DELETE FROM outbox_message")
            await marks.search(LANES)
            assert set(marks._marks.values()) == {6}
            started = await sql.fetchval("SELECT pg_postmaster_start_time()")
            os.kill(await sql.fetchval("SELECT pg_backend_pid()"), signal.SIGKILL)
            # Until it ends the other sessions, the server accepts connections as before.
            await eventually(lambda: not store.messages._connection.is_open)
            await eventually(lambda: accepts(url))
            sql = await asyncpg.connect(url)
            assert await sql.fetchval("SELECT pg_postmaster_start_time()") == started
            # As if the server had not written the last sequences to disk: it draws them again.
            await sql.execute("SELECT setval(pg_get_serial_sequence('outbox_message', 'id'), 1)")
            for number in range(10):
                await sql.execute(RECORD, f"event-{number}", "key")
            await sql.close()

            async def found() -> list[Message]:
                with suppress(StoreUnavailableError):  # its session ended
                    return await store.messages.fetch(READY)
                return []

            first = await eventually(found)
            assert [message.event_id for message in first] == [f"event-{number}" for number in range(10)]


async def accepts(url: str) -> bool:
    """Whether the server accepts a connection; not while it recovers."""
    with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        await (await asyncpg.connect(url)).close()
        return True
    return False
