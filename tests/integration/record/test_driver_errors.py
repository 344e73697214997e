"""Errors unrelated to the outbox are raised unchanged, because callers retry on their types."""

import sqlite3
import traceback
from contextlib import closing

import asyncpg
import psycopg
import pytest
from psycopg import errors
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from pillarbox import Event, Outbox, RecordError
from pillarbox.core.errors import RowsRefusedError, StoreUnavailableError
from pillarbox.core.outcome import error_text
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from tests.integration.record.conftest import committed_ids
from tests.integration.record.sqlalchemy_ways import engine_for

pytestmark = pytest.mark.sqlalchemy

EVENT = Event("order.placed", {"id": 1}, event_id="evt-001")

FAILING_TRIGGER = """
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'please retry' USING ERRCODE = '40001'; END $$;
    CREATE TRIGGER fail BEFORE INSERT ON outbox_message FOR EACH ROW EXECUTE FUNCTION fail();
"""


@pytest.fixture
def failing_url(postgres_url: str) -> str:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(FAILING_TRIGGER)
    return postgres_url


async def test_a_serialization_failure_is_raised_unchanged(failing_url: str) -> None:
    with psycopg.connect(failing_url) as connection, pytest.raises(errors.SerializationFailure):
        Outbox().record(connection, EVENT)
    with (
        engine_for(failing_url, "psycopg2") as engine,
        Session(engine) as session,
        pytest.raises(DBAPIError, match="please retry"),
    ):
        Outbox().record(session, EVENT)
    own = await asyncpg.connect(failing_url)
    with pytest.raises(asyncpg.SerializationError):
        async with own.transaction():
            await Outbox().arecord(own, EVENT)
    await own.close()


def test_a_lost_connection_is_raised_unchanged(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection, psycopg.connect(postgres_url) as other:
        connection.execute("SELECT 1")
        other.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))
        with pytest.raises(psycopg.OperationalError):
            Outbox().record(connection, EVENT)
    assert committed_ids(postgres_url) == []


def test_a_busy_error_of_sqlite_is_raised_unchanged(sqlite_path: str) -> None:
    with (
        closing(sqlite3.connect(sqlite_path)) as holder,
        closing(sqlite3.connect(sqlite_path, timeout=0)) as connection,
    ):
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            Outbox().record(connection, EVENT)


def test_a_violated_constraint_is_a_record_error(postgres_url: str, sqlite_path: str) -> None:
    lax, large = Outbox(max_payload="2 MiB"), Event("large", bytes(1024**2 + 1))
    with psycopg.connect(postgres_url) as postgres, pytest.raises(RecordError, match="rejects an event"):
        lax.record(postgres, large)
    with closing(sqlite3.connect(sqlite_path)) as sqlite, pytest.raises(RecordError, match="rejects an event"):
        lax.record(sqlite, large)


CANARY = b"canary-in-the-payload"
STRICTER = "ALTER TABLE outbox_message ADD CONSTRAINT never CHECK (event_type <> 'large')"


def shown(error: BaseException) -> str:
    """Everything that a logged traceback would show."""
    return "".join(traceback.format_exception(error))


def refuse(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(STRICTER)


async def test_the_error_of_a_rejected_row_has_no_payload(postgres_url: str) -> None:
    """PostgreSQL's DETAIL has the whole row, and SQLAlchemy adds the parameters."""
    refuse(postgres_url)
    large = Event("large", CANARY)
    errors_seen: list[RecordError] = []
    with psycopg.connect(postgres_url) as connection, pytest.raises(RecordError) as caught:
        Outbox().record(connection, large)
    errors_seen.append(caught.value)
    for driver in ("psycopg2", "psycopg"):
        with engine_for(postgres_url, driver) as engine, Session(engine) as session:
            with pytest.raises(RecordError) as caught:
                Outbox().record(session, large)
            errors_seen.append(caught.value)
    own = await asyncpg.connect(postgres_url)
    with pytest.raises(RecordError) as caught:
        async with own.transaction():
            await Outbox().arecord(own, large)
    await own.close()
    errors_seen.append(caught.value)
    for error in errors_seen:
        assert "never" in str(error)
        assert CANARY.decode() not in shown(error)
        assert CANARY.hex() not in shown(error)


async def test_the_error_of_a_rejected_settlement_has_no_payload(postgres_url: str) -> None:
    refuse(postgres_url)
    connection = PostgresStoreConnection(postgres_url)
    with pytest.raises(RowsRefusedError, match="never") as refused:
        await connection.fetch("INSERT INTO public.outbox_message (event_type, payload) VALUES ('large', $1)", CANARY)
    with pytest.raises(StoreUnavailableError) as mistyped:
        await connection.fetch("SELECT $1::integer", CANARY)
    await connection.aclose()
    assert CANARY.hex() not in shown(refused.value)
    assert CANARY.decode() not in str(mistyped.value)


def test_the_database_error_of_a_handler_has_no_rows(postgres_url: str) -> None:
    refuse(postgres_url)
    insert = "INSERT INTO outbox_message (event_type, payload) VALUES ('large', %s)"
    with psycopg.connect(postgres_url) as connection, pytest.raises(errors.CheckViolation) as caught:
        connection.execute(insert, (CANARY,))
    assert CANARY.hex()[:20] in str(caught.value)
    assert CANARY.hex()[:20] not in error_text(caught.value)
    with (
        engine_for(postgres_url, "psycopg") as engine,
        Session(engine) as session,
        pytest.raises(DBAPIError) as wrapped,
    ):
        session.execute(text(insert.replace("%s", ":payload")), {"payload": CANARY})
    assert CANARY.decode() in str(wrapped.value)
    assert CANARY.decode() not in error_text(wrapped.value)
    assert "never" in error_text(wrapped.value)
