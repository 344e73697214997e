"""Events are stored byte for byte and in order, with every driver."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from pymysql.cursors import DictCursor

from pillarbox import Event, Outbox
from tests.integration.record.conftest import EventIds
from tests.integration.record.mariadb_ways import pymysql_connection
from tests.integration.record.way import Way
from tests.integration.record.ways import EVERY

pytestmark = pytest.mark.parametrize(
    ("way", "database"),
    EVERY,
    indirect=["database"],
    ids=str,
)

SAME = ["event_id", "destination", "event_type", "aggregate_type", "aggregate_id", "content_type"]
SAME += ["schema_version", "correlation_id", "causation_id", "trace_id"]
AWKWARD = "a'b\"c\\d%s %% $1 ? {x} :y ß漢🎉"
OCCURRED = datetime(2026, 11, 15, 9, 30, 0, 123456, timezone(timedelta(hours=1)))
EXTREMES = [
    datetime(1, 1, 1, 0, 0, 0, 1000, UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
    datetime(2026, 2, 28, 23, 59, 59, 999500, UTC),
    datetime(9999, 12, 31, 23, 59, 59, 998000, UTC),
]
AVAILABLE = datetime(2030, 1, 1, tzinfo=UTC)


def _stored(database: str) -> list[dict[str, Any]]:
    query = "SELECT * FROM outbox_message ORDER BY id"
    if database.startswith("postgresql://"):
        with psycopg.connect(database, row_factory=dict_row) as postgres:
            return postgres.execute(query).fetchall()
    if database.startswith("mariadb://"):
        with pymysql_connection(database, cursorclass=DictCursor) as mariadb, mariadb.cursor() as cursor:
            cursor.execute(query)
            return [{**row, "key": row["key"] and row["key"].decode()} for row in cursor.fetchall()]
    with closing(sqlite3.connect(database)) as sqlite:
        sqlite.row_factory = sqlite3.Row
        return [dict(row) for row in sqlite.execute(query)]


def _time(stored: Any) -> datetime:
    time = stored if isinstance(stored, datetime) else datetime.fromisoformat(stored)
    # MariaDB has no time zones: its times are in UTC.
    return time if time.tzinfo else time.replace(tzinfo=UTC)


async def test_every_field_is_stored_as_given(way: Way, database: str) -> None:
    event = Event(
        AWKWARD,
        b"\x00\xff\\x00'%s" + bytes(range(256)),
        event_id=AWKWARD,
        aggregate_type=AWKWARD + "1",
        aggregate_id=AWKWARD + "2",
        key=AWKWARD + "3",
        destination=AWKWARD + "4",
        content_type="application/avro",
        headers={"x-header": AWKWARD, 'quo"ted': ""},
        schema_version=7,
        correlation_id=AWKWARD + "5",
        causation_id=AWKWARD + "6",
        trace_id=AWKWARD + "7",
        occurred_at=OCCURRED,
        available_at=AVAILABLE,
    )
    async with way.transaction(database) as connection:
        await way.record(Outbox(), connection, event)
    (row,) = _stored(database)
    headers = row["headers"] if isinstance(row["headers"], dict) else json.loads(row["headers"])
    assert bytes(row["payload"]) == event.payload
    assert headers == event.headers
    assert _time(row["occurred_at"]) == OCCURRED
    assert _time(row["available_at"]) == AVAILABLE
    assert row["ordering_key"] == row["key"] == event.key
    for name in SAME:
        assert row[name] == getattr(event, name)


async def test_omitted_fields_get_defaults_in_a_mixed_batch(way: Way, database: str) -> None:
    full = Event("a", {}, occurred_at=OCCURRED, available_at=AVAILABLE, aggregate_type="T", aggregate_id="1")
    async with way.transaction(database) as connection:
        await way.record(Outbox(), connection, full, Event("b", {"ä": [1, None]}), Event("c", b""))
    first, second, third = _stored(database)
    assert first["key"] == "T:1"
    assert abs(_time(second["occurred_at"]) - datetime.now(UTC)) < timedelta(minutes=1)
    assert bytes(second["payload"]) == '{"ä":[1,null]}'.encode()
    assert bytes(third["payload"]) == b""
    assert third["content_type"] == "application/octet-stream"
    assert (second["content_type"], second["schema_version"], second["destination"]) == ("application/json", 1, "")
    for name in ("aggregate_type", "aggregate_id", "key", "correlation_id", "causation_id", "trace_id", "available_at"):
        assert second[name] is None


async def test_the_sequence_follows_the_order_of_the_call(way: Way, database: str, committed: EventIds) -> None:
    events = [Event("counted", {"n": n}, event_id=f"{n * 7919 % 1000:03}") for n in range(1000)]
    async with way.transaction(database) as connection:
        ids = await way.record(Outbox(), connection, *events)
    assert ids == [event.event_id for event in events]
    assert committed() == ids


async def test_any_supported_time_can_be_recorded(way: Way, database: str) -> None:
    async with way.transaction(database) as connection:
        for at in EXTREMES:
            await way.record(Outbox(), connection, Event("a", {}, occurred_at=at), Event("b", {}, available_at=at))
    rows = _stored(database)
    for at, first, second in zip(EXTREMES, rows[::2], rows[1::2], strict=True):
        assert _time(first["occurred_at"]) == at
        assert timedelta(0) <= _time(second["available_at"]) - at < timedelta(milliseconds=1)
