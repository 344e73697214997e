"""Anything that can INSERT is a producer: SQLite's own shell needs a type and a payload, and bad rows stay out."""

import sqlite3
import subprocess
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from pillarbox.core.outcome import DELIVERED
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import Owner
from tests.integration.sqlite.conftest import Shell


async def test_two_columns_are_enough_for_an_event(owner: Owner, shell: Shell) -> None:
    shell("""INSERT INTO outbox_message (event_type, payload) VALUES ('order.placed', '{"id": 42, "by": "é"}');""")
    [message] = await owner.ready()
    assert (message.event_type, message.payload) == ("order.placed", '{"id": 42, "by": "é"}'.encode())
    assert (message.destination, message.key, message.content_type) == ("", None, "application/json")
    assert (message.headers, message.schema_version, message.attempts) == ({}, 1, 0)
    now = datetime.now(UTC)
    assert now - timedelta(minutes=1) < message.recorded_at == message.occurred_at <= now + timedelta(seconds=1)


async def test_the_database_generates_ids_of_version_7(owner: Owner, shell: Shell) -> None:
    shell("INSERT INTO outbox_message (event_type, payload) VALUES ('a', ''), ('b', ''), ('c', '');")
    messages = await owner.ready()
    ids = [UUID(message.event_id) for message in messages]
    assert len(set(ids)) == 3
    assert {(uuid.version, uuid.variant) for uuid in ids} == {(7, "specified in RFC 4122")}
    made_at = ids[0].int >> 80
    assert abs(made_at - datetime.now(UTC).timestamp() * 1000) < 60_000


@pytest.mark.parametrize(
    ("columns", "values", "key"),
    [
        ("ordering_key, aggregate_type, aggregate_id", "'given', 'ORDER', '42'", "given"),
        ("aggregate_type, aggregate_id", "'ORDER', 42", "ORDER:42"),
        ("aggregate_id", "'42'", "42"),
        ("aggregate_type", "'ORDER'", None),
    ],
)
async def test_the_database_derives_the_key(
    owner: Owner, shell: Shell, columns: str, values: str, key: str | None
) -> None:
    shell(f"INSERT INTO outbox_message (event_type, payload, {columns}) VALUES ('t', '', {values});")
    [message] = await owner.ready()
    assert message.key == key


async def test_a_transaction_of_the_shell_is_atomic_for_events(owner: Owner, shell: Shell) -> None:
    place = "INSERT INTO orders VALUES (1); INSERT INTO outbox_message (event_type, payload) VALUES ('%s', '');"
    shell("CREATE TABLE orders (id);")
    shell(f"BEGIN; {place % 'undone'} ROLLBACK; BEGIN; {place % 'done'} COMMIT;")
    assert [message.event_type for message in await owner.ready()] == ["done"]


REFUSED = {
    "an empty id": {"event_id": "''"},
    "a long id": {"event_id": "hex(zeroblob(101))"},
    "an id with a line end": {"event_id": "'a' || char(10)"},
    "an id with a NUL": {"event_id": "'a' || char(0) || 'b'"},
    "an id of bytes": {"event_id": "x'616263'"},
    "an empty type": {"event_type": "''"},
    "a long type": {"event_type": "hex(zeroblob(128))"},
    "a type with an escape": {"event_type": "char(27) || '[31m'"},
    "a key with DEL": {"ordering_key": "'k' || char(127)"},
    "a key of bytes": {"ordering_key": "x'00'"},
    "a long aggregate id": {"aggregate_id": "hex(zeroblob(128))"},
    "an aggregate type with a tab": {"aggregate_type": "char(9)"},
    "a long destination": {"destination": "hex(zeroblob(128))"},
    "no payload": {"payload": "NULL"},
    "headers that are not JSON": {"headers": "'{'"},
    "headers that are a list": {"headers": "'[]'"},
    "headers that end in a NUL": {"headers": "'{}' || char(0)"},
    "a version that is not a number": {"schema_version": "'one'"},
    "attempts that are not a number": {"attempts": "'many'"},
    "an unknown way of waiting": {"held": "'somehow'"},
    "a time without zone": {"available_at": "'2030-01-01 00:00:00'"},
    "a time that is a word": {"available_at": "'tomorrow'"},
    "a time that is now": {"available_at": "'now'"},
    "a thirteenth month": {"available_at": "'2030-13-01T00:00:00.000Z'"},
    "a 30th of February": {"available_at": "'2030-02-30T00:00:00.000Z'"},
    "a 24th hour": {"available_at": "'2030-01-01T24:00:00.000Z'"},
    "a year before the first": {"occurred_at": "'0000-01-01T00:00:00.000Z'"},
    "a number as a time": {"occurred_at": "1700000000"},
    "a recording time of nowhere": {"recorded_at": "'2030-01-01T00:00:00+01:00'"},
}


@pytest.mark.parametrize("columns", REFUSED.values(), ids=REFUSED.keys())
async def test_invalid_values_are_rejected(owner: Owner, shell: Shell, columns: dict[str, str]) -> None:
    row = {"event_type": "'t'", "payload": "''"} | columns
    script = f"INSERT INTO outbox_message ({', '.join(row)}) VALUES ({', '.join(row.values())});"
    with pytest.raises(subprocess.CalledProcessError) as refused:
        shell(script)
    assert "constraint failed" in refused.value.stderr
    assert await owner.ready() == []
    assert await owner.due() == []


async def test_every_millisecond_is_a_valid_time(owner: Owner, sql: sqlite3.Connection) -> None:
    times = [f"2020-12-31T23:59:{second:02}.{ms:03}Z" for second in range(60) for ms in range(0, 1000, 7)]
    sql.execute("BEGIN")
    sql.executemany(
        "INSERT INTO outbox_message (event_type, payload, available_at) VALUES ('t', '', ?)", [(t,) for t in times]
    )
    sql.execute("COMMIT")
    messages = await owner.due(limit=10_000, quota=10_000)
    assert [message.available_at for message in messages] == [datetime.fromisoformat(time) for time in times]


async def test_a_payload_above_the_limit_is_rejected(store: SqliteStore, owner: Owner, shell: Shell) -> None:
    insert = "INSERT INTO outbox_message (event_type, payload) VALUES ('t', zeroblob(%d));"
    with pytest.raises(subprocess.CalledProcessError) as refused:
        shell(insert % (1024 * 1024 + 1))
    assert "max_payload, 1048576 bytes" in refused.value.stderr
    shell(insert % (1024 * 1024))
    assert [len(message.payload) for message in await owner.ready()] == [1024 * 1024]


async def test_a_payload_counts_in_bytes_not_in_characters(store: SqliteStore, owner: Owner, shell: Shell) -> None:
    shell("INSERT INTO outbox_message (event_type, payload) VALUES ('t', 'éé'), ('t', 'éé');")
    # Four bytes of payload each, and two of headers.
    assert len(await owner.ready(max_bytes=11)) == 1
    assert len(await owner.ready(max_bytes=12)) == 2


async def test_invalid_utf8_does_not_affect_other_events(
    owner: Owner, sql: sqlite3.Connection, store: SqliteStore
) -> None:
    bad = "CAST(x'6180ff' AS TEXT)"
    with pytest.raises(sqlite3.IntegrityError, match="UTF-8"):
        sql.execute(f"INSERT INTO outbox_message (event_id, event_type, payload) VALUES ({bad}, 't', 'x')")
    sql.execute(f"INSERT INTO outbox_message (event_type, payload, correlation_id) VALUES ('t', {bad}, {bad})")
    [message] = await owner.ready()
    assert (message.payload, message.correlation_id) == (b"a\x80\xff", "a��")
    assert (await owner.settle(DELIVERED, message)).count == 1
    assert await owner.ready() == []
