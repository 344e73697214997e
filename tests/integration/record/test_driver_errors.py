"""Failures that say nothing about the outbox pass as the driver raised them: callers retry on exactly those types."""

import sqlite3
from contextlib import closing

import asyncpg
import psycopg
import pytest
from psycopg import errors
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from pillarbox import Event, Outbox, RecordError
from tests.integration.record.conftest import committed_ids
from tests.integration.record.sqlalchemy_ways import engine_for

EVENT = Event("order.placed", {"id": 1}, event_id="evt-001")

FAILING_TRIGGER = """
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'try again' USING ERRCODE = '40001'; END $$;
    CREATE TRIGGER fail BEFORE INSERT ON outbox_message FOR EACH ROW EXECUTE FUNCTION fail();
"""


@pytest.fixture
def failing_url(postgres_url: str) -> str:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(FAILING_TRIGGER)
    return postgres_url


async def test_a_serialization_failure_stays_one(failing_url: str) -> None:
    with psycopg.connect(failing_url) as connection, pytest.raises(errors.SerializationFailure):
        Outbox().record(connection, EVENT)
    with (
        engine_for(failing_url, "psycopg2") as engine,
        Session(engine) as session,
        pytest.raises(DBAPIError, match="try again"),
    ):
        Outbox().record(session, EVENT)
    own = await asyncpg.connect(failing_url)
    with pytest.raises(asyncpg.SerializationError):
        async with own.transaction():
            await Outbox().arecord(own, EVENT)
    await own.close()


def test_a_lost_connection_stays_one(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection, psycopg.connect(postgres_url) as other:
        connection.execute("SELECT 1")
        other.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))
        with pytest.raises(psycopg.OperationalError):
            Outbox().record(connection, EVENT)
    assert committed_ids(postgres_url) == []


def test_a_busy_sqlite_stays_busy(sqlite_path: str) -> None:
    with (
        closing(sqlite3.connect(sqlite_path)) as holder,
        closing(sqlite3.connect(sqlite_path, timeout=0)) as connection,
    ):
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            Outbox().record(connection, EVENT)


def test_a_table_stricter_than_the_outbox_says_so(postgres_url: str, sqlite_path: str) -> None:
    lax, large = Outbox(max_payload="2 MiB"), Event("large", bytes(1024**2 + 1))
    with psycopg.connect(postgres_url) as postgres, pytest.raises(RecordError, match="does not take an event"):
        lax.record(postgres, large)
    with closing(sqlite3.connect(sqlite_path)) as sqlite, pytest.raises(RecordError, match="does not take an event"):
        lax.record(sqlite, large)
