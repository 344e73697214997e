"""`outbox_record`: the same row as `Outbox.record`, from any program that can call a function in SQL."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from pillarbox import Event, Outbox, TableNames
from pillarbox.stores.postgres import PostgresStore
from tests.integration.record.notifications import Listener, sleeping_relay

AWKWARD = {"path": "C:\\temp\\new\\bin", "quote": 'it\'s "quoted"', "line": "a\nb\tc", "text": "ß🎉\u2028"}
COLUMNS = (
    "destination, event_type, aggregate_type, aggregate_id, key, lane, payload, content_type, headers, schema_version, "
    "correlation_id, causation_id, trace_id, occurred_at, available_at, attempts, deferrals, held"
)
MOMENT = datetime(2031, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)


@pytest.fixture
def connection(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url) as opened:
        yield opened


def test_the_function_writes_the_row_of_record(connection: psycopg.Connection[Any]) -> None:
    payload = json.dumps(AWKWARD, separators=(",", ":"), ensure_ascii=False)
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
    returned = connection.execute(
        "SELECT outbox_record('order.placed', %(payload)s, aggregate_type => 'ORDER', aggregate_id => '42', "
        "event_id => 'by function', destination => 'billing', headers => '{\"tenant\": \"acme\"}', "
        "schema_version => 3, correlation_id => 'c', causation_id => 'b', trace_id => 't', "
        "occurred_at => %(at)s, available_at => %(at)s)",
        {"payload": payload, "at": MOMENT},
    ).fetchone()
    assert returned == ("by function",)
    by_record, by_function = connection.execute(
        f"SELECT {COLUMNS} FROM outbox_message ORDER BY event_id DESC"
    ).fetchall()
    assert by_function == by_record


def test_only_type_and_payload_are_needed(connection: psycopg.Connection[Any]) -> None:
    [first], [second] = connection.execute(
        "SELECT outbox_record('a', '{}') UNION ALL SELECT outbox_record('a', '{}', NULL, NULL, NULL, NULL, NULL, NULL, "
        "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    ).fetchall()
    assert first != second
    rows = connection.execute(
        "SELECT destination, key, headers, content_type, schema_version, occurred_at = now(), available_at "
        "FROM outbox_message"
    ).fetchall()
    assert rows == [("", None, {}, "application/json", 1, True, None)] * 2


@pytest.mark.parametrize("kind", ["", "::text", "::jsonb", "::varchar"])
def test_every_kind_of_payload_is_stored_as_json(kind: str, connection: psycopg.Connection[Any]) -> None:
    connection.execute(f"SELECT outbox_record('a', %s{kind})".encode(), (json.dumps(AWKWARD),))
    [(payload,)] = connection.execute("SELECT payload FROM outbox_message").fetchall()
    assert json.loads(payload) == AWKWARD


def test_text_keeps_its_bytes(connection: psycopg.Connection[Any]) -> None:
    """An INSERT of the same text would read `\\\\` as `\\`: the path would contain other characters."""
    text = '{"b": 1.0, "a": "C:\\\\bin", "b": 2}'
    connection.execute("SELECT outbox_record('a', %s)", (text,))
    connection.execute(
        "INSERT INTO outbox_message (event_id, event_type, payload) VALUES ('0', 'a', %s::text::bytea)", (text,)
    )
    inserted, recorded = connection.execute("SELECT payload FROM outbox_message ORDER BY event_id").fetchall()
    assert recorded == (text.encode(),)
    assert json.loads(inserted[0]) != json.loads(text)


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        ("not JSON", psycopg.errors.InvalidTextRepresentation),
        ('{"path": "C:\\dir"}', psycopg.errors.InvalidTextRepresentation),
        ('"{}"', psycopg.errors.InvalidParameterValue),
        ("null", psycopg.errors.InvalidParameterValue),
        (None, psycopg.errors.NotNullViolation),
    ],
)
def test_a_payload_that_is_no_object_or_array_is_rejected(
    payload: str | None, error: type[psycopg.Error], connection: psycopg.Connection[Any]
) -> None:
    with pytest.raises(error):
        connection.execute("SELECT outbox_record('a', %s)", (payload,))


def test_another_content_type_takes_any_text(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SELECT outbox_record('a', 'id;42', content_type => 'text/csv')")
    assert connection.execute("SELECT payload FROM outbox_message").fetchone() == (b"id;42",)


def test_an_event_id_that_is_pending_is_rejected(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SELECT outbox_record('a', '{}', event_id => 'same')")
    with pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute("SELECT outbox_record('a', '{}', event_id => 'same')")


def test_a_sleeping_relay_is_notified_at_the_commit(postgres_url: str) -> None:
    with sleeping_relay(postgres_url), Listener(postgres_url) as listener:
        with psycopg.connect(postgres_url) as connection:
            connection.execute("SELECT outbox_record('a', '{}')")
            assert not listener.notified()
        assert listener.notified()


def test_an_awake_relay_and_a_rollback_cause_no_notification(postgres_url: str) -> None:
    with Listener(postgres_url) as listener:
        with psycopg.connect(postgres_url) as connection:
            connection.execute("SELECT outbox_record('a', '{}')")
        with sleeping_relay(postgres_url), psycopg.connect(postgres_url) as connection:
            connection.execute("SELECT outbox_record('a', '{}')")
            connection.rollback()
            connection.execute("SELECT outbox_record('a', '{}', notify => false)")
        assert not listener.notified()


def test_two_phase_commit_records_without_a_notification(postgres_url: str) -> None:
    with sleeping_relay(postgres_url), psycopg.connect(postgres_url) as connection:
        connection.tpc_begin(connection.xid(1, "recorded", "here"))
        connection.execute("SELECT outbox_record('a', '{}', notify => false)")
        connection.tpc_prepare()
        connection.tpc_commit()
        assert connection.execute("SELECT count(*) FROM outbox_message").fetchone() == (1,)


def test_a_trigger_records_within_the_transaction_of_its_row(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "CREATE TABLE orders (id int); CREATE FUNCTION placed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "PERFORM outbox_record('order.placed', jsonb_build_object('id', NEW.id), key => 'order-' || NEW.id); "
        "RETURN NULL; END $$; CREATE TRIGGER placed AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION placed()"
    )
    connection.commit()
    connection.execute("INSERT INTO orders VALUES (1)")
    connection.rollback()
    connection.execute("INSERT INTO orders VALUES (2)")
    rows = connection.execute("SELECT convert_from(payload, 'UTF8'), key FROM outbox_message").fetchall()
    assert rows == [('{"id": 2}', "order-2")]


def test_names_of_the_caller_change_nothing(connection: psycopg.Connection[Any]) -> None:
    """A search path of the caller, and tables and functions that are named like ours, are not used."""
    connection.execute(
        "CREATE SCHEMA mine; CREATE TABLE mine.outbox_message (event_type text, payload bytea); "
        "CREATE FUNCTION mine.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'; "
        "SET search_path = mine, public, pg_catalog"
    )
    connection.execute("SELECT public.outbox_record('a', '{}')")
    assert connection.execute("SELECT count(*) FROM public.outbox_message").fetchone() == (1,)


async def test_the_name_follows_prefix_and_schema(empty_postgres_url: str) -> None:
    store = PostgresStore(empty_postgres_url, tables=TableNames(prefix="Shop_", schema="Sales"))
    await store.schema.apply()
    await store.aclose()
    with psycopg.connect(empty_postgres_url) as connection:
        connection.execute("SELECT \"Sales\".\"Shop_record\"('a', '{}')")
        assert connection.execute('SELECT count(*) FROM "Sales"."Shop_message"').fetchone() == (1,)
