"""`outbox_record`: the same row as `Outbox.record`, from any program that can call a procedure."""

import json
import re
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import pytest

from pillarbox import Event, Outbox, TableNames
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.stores.splitting import split_statements
from tests.docs.pages import ROOT
from tests.integration.mariadb.session import Session
from tests.integration.record.mariadb_ways import pymysql_connection
from tests.servers.mariadb import MariaDBServer

AWKWARD = {"path": "C:\\temp\\new\\bin", "quote": 'it\'s "quoted"', "line": "a\nb\tc", "text": "ß🎉\u2028"}
COLUMNS = (
    "destination, event_type, aggregate_type, aggregate_id, `key`, lane, payload, content_type, headers, "
    "schema_version, correlation_id, causation_id, trace_id, occurred_at, "
    "available_at, attempts, deferrals, held, state, size"
)
MOMENT = datetime(2031, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)


async def call(
    sql: Session, event_type: str, payload: str | None, options: dict[str, object] | str | None = None
) -> Any:
    given = json.dumps(options, ensure_ascii=False) if isinstance(options, dict) else options
    await sql.execute("CALL outbox_record(%s, %s, %s, @event_id)", event_type, payload, given)
    return await sql.value("SELECT @event_id")


async def test_the_procedure_writes_the_row_of_record(store: MariaDBStore, sql: Session, mariadb_url: str) -> None:
    with pymysql_connection(mariadb_url) as connection:
        Outbox().record(
            connection,
            Event(
                "order.placed",
                AWKWARD,
                event_id="by record",
                aggregate_type="ORDER",
                aggregate_id="42",
                destination="billing",
                headers={"tenant": "acme"},
                schema_version=3,
                correlation_id="c",
                causation_id="b",
                trace_id="t",
                occurred_at=MOMENT,
                available_at=MOMENT,
            ),
        )
        connection.commit()
    [(headers,)] = await sql.execute("SELECT headers FROM outbox_message")
    options = (
        '{"event_id": "by procedure", "aggregate_type": "ORDER", "aggregate_id": 42, "destination": "billing", '
        f'"headers": {headers}, "schema_version": 3, "correlation_id": "c", "causation_id": "b", "trace_id": "t", '
        '"occurred_at": "2031-05-06T07:08:09.123456Z", "available_at": "2031-05-06 07:08:09.123456"}'
    )
    payload = json.dumps(AWKWARD, separators=(",", ":"), ensure_ascii=False)
    assert await call(sql, "order.placed", payload, options) == "by procedure"
    by_record, by_procedure = await sql.execute(f"SELECT {COLUMNS} FROM outbox_message ORDER BY event_id DESC")
    assert by_procedure == by_record


async def test_only_type_and_payload_are_needed(store: MariaDBStore, sql: Session) -> None:
    first = await call(sql, "a", "{}")
    second = await call(sql, "a", "{}", {"key": None, "headers": None, "available_at": None})
    assert first != second
    rows = await sql.execute(
        "SELECT destination, `key`, headers, content_type, schema_version, available_at FROM outbox_message"
    )
    assert rows == [("", None, "{}", "application/json", 1, None)] * 2


@pytest.mark.parametrize(
    ("payload", "options", "reported"),
    [
        ("not JSON", None, "not JSON"),
        (None, None, "not JSON"),
        ('"{}"', None, "encoded twice"),
        ("{}", "[]", "not a JSON object"),
        ("{}", "{", "not a JSON object"),
        ("{}", {"ordering_key": "k"}, 'unknown options: \\["ordering_key"\\]'),
        ("{}", {"available_at": "tomorrow"}, "tomorrow"),
        ("{}", {"headers": "tenant"}, "message_headers_ck"),
    ],
)
async def test_invalid_input_is_rejected(
    store: MariaDBStore, sql: Session, payload: str | None, options: dict[str, object] | str | None, reported: str
) -> None:
    with pytest.raises(Exception, match=reported):
        await call(sql, "a", payload, options)
    assert await sql.value("SELECT count(*) FROM outbox_message") == 0


async def test_another_content_type_takes_any_text(store: MariaDBStore, sql: Session) -> None:
    await call(sql, "a", "id;42", {"content_type": "text/csv"})
    assert await sql.value("SELECT payload FROM outbox_message") == b"id;42"


async def test_a_trigger_records_within_the_transaction_of_its_row(store: MariaDBStore, sql: Session) -> None:
    await sql.execute("CREATE TABLE orders (id INT) ENGINE = InnoDB")
    await sql.execute(
        "CREATE TRIGGER placed AFTER INSERT ON orders FOR EACH ROW "
        "CALL outbox_record('order.placed', json_object('id', NEW.id), "
        "json_object('key', concat('order-', NEW.id)), @id)"
    )
    await sql.execute("BEGIN")
    await sql.execute("INSERT INTO orders VALUES (1)")
    await sql.execute("ROLLBACK")
    await sql.execute("INSERT INTO orders VALUES (2)")
    assert await sql.execute("SELECT payload, `key` FROM outbox_message") == [(b'{"id": 2}', b"order-2")]


@pytest.mark.parametrize("mode", ["", "ANSI_QUOTES,PIPES_AS_CONCAT", "ORACLE"])
async def test_the_callers_mode_changes_nothing(store: MariaDBStore, sql: Session, mode: str) -> None:
    await sql.execute(f"SET SESSION sql_mode = '{mode}'")
    await call(sql, "a", json.dumps(AWKWARD), {"key": "it's"})
    assert await sql.execute("SELECT payload, `key` FROM outbox_message") == [(json.dumps(AWKWARD).encode(), b"it's")]


async def test_a_type_that_is_too_long_is_rejected_without_strict_mode_too(store: MariaDBStore, sql: Session) -> None:
    await sql.execute("SET sql_mode = ''")
    with pytest.raises(Exception, match="Data too long for column 'event_type'"):
        await call(sql, "x" * 300, "{}")


async def test_the_name_follows_the_prefix(empty_mariadb_url: str) -> None:
    async with (
        aclosing(MariaDBStore(empty_mariadb_url, tables=TableNames(prefix="Shop_"))) as store,
        Session(empty_mariadb_url) as sql,
    ):
        await store.schema.apply()
        await sql.execute("CALL Shop_record('a', '{}', NULL, @id)")
        assert await sql.value("SELECT count(*) FROM Shop_message") == 1


async def test_the_statements_of_the_page_run(store: MariaDBStore, sql: Session) -> None:
    _, _, mariadb = (ROOT / "docs/how-to/plain-sql-producers.md").read_text(encoding="utf-8").partition("## MariaDB")
    [shown] = re.findall(r"```sql\n(.*?)```", mariadb, re.DOTALL)
    for statement in split_statements(shown, backslashes=True):
        await sql.execute(statement)
    assert await sql.execute("SELECT event_type, `key` FROM outbox_message") == [("order.placed", b"order-42")]


async def test_a_producer_calls_it_with_the_grants_of_the_page(
    store: MariaDBStore, mariadb_server: MariaDBServer, mariadb_url: str
) -> None:
    database = mariadb_url.rpartition("/")[2]
    mariadb_server.execute("CREATE USER caller")
    try:
        mariadb_server.execute(f"GRANT INSERT ON {database}.outbox_message TO caller")
        async with Session(mariadb_url.replace("root@", "caller@")) as sql:
            with pytest.raises(Exception, match="denied"):
                await call(sql, "a", "{}")
        mariadb_server.execute(f"GRANT EXECUTE ON PROCEDURE {database}.outbox_record TO caller")
        async with Session(mariadb_url.replace("root@", "caller@")) as sql:
            assert await call(sql, "a", "{}")
    finally:
        mariadb_server.execute("DROP USER caller")
