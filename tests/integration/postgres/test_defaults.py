"""Defaults of ALTER ROLE and ALTER DATABASE do not affect the store: its connections set their own values."""

from contextlib import aclosing

import asyncpg
import pytest

from pillarbox.core.event import Event
from pillarbox.core.fetch import Ready
from pillarbox.core.lane import RelayRegistration, epochs_of
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Retry
from pillarbox.core.store import Retention
from pillarbox.record.outbox import Outbox
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from tests.databases import Sql

DEFAULTS = {
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
    "default_transaction_deferrable": "on",
    "statement_timeout": "1ms",
    "lock_timeout": "1ms",
    "idle_in_transaction_session_timeout": "1ms",
    "idle_session_timeout": "1ms",
    "search_path": "pg_temp",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "array_nulls": "off",
    "DateStyle": "German, DMY",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Pacific/Kiritimati",
    "bytea_output": "escape",
    "client_encoding": "LATIN1",
    "plan_cache_mode": "force_custom_plan",
}


async def let_in(connection: PostgresStoreConnection) -> set[str]:
    """The defaults of the database that apply to a connection."""
    found = [(name, await connection.fetch("SELECT current_setting($1)", name)) for name in DEFAULTS]
    return {name for name, [(value,)] in found if value == DEFAULTS[name]}


async def test_defaults_of_role_and_database_do_not_affect_the_store(postgres_url: str, sql: Sql) -> None:
    database = await sql.fetchval("SELECT current_database()")
    await sql.execute("INSERT INTO outbox_message (event_type, payload) SELECT 'a', '{}' FROM generate_series(1, 3)")
    for name, value in DEFAULTS.items():
        await sql.execute(f"ALTER DATABASE \"{database}\" SET {name} = '{value}'")
    async with aclosing(PostgresStore(postgres_url, ledger=True)) as store:
        await store.schema.apply(aliases=True)
        await store.schema.check()
        *working, listing, asking, asking_too = [await let_in(connection) for connection in store._connections]
        assert not set().union(*working)
        # Set by the store itself.
        assert listing == {"plan_cache_mode"}
        # Diagnosis must see what producers see.
        assert asking == asking_too == {"default_transaction_read_only"}
        await store.lanes.join(RelayRegistration(id="a"), lease=60)
        epochs = epochs_of(await store.lanes.acquire("a", limit=64))
        delivered, retried, dead = await store.messages.fetch(Ready(lanes=list(epochs)))
        decisions = [
            Decision(delivered, DELIVERED, "x"),
            Decision(retried, Retry(delay=60, error="no"), "x"),
            Decision(dead, Dead(error="no"), "x"),
        ]
        assert (await store.writes.settle(epochs, decisions)).count == 3
        await store.schema.prepare()
        await store.pruning.prune(Retention(history=0, dead=0, inbox=0, ledger=0, audit=0))
        await store.wakeup.request("a", 1)
        assert (await store.admin.inspection.overview()).backlog == 1


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
async def test_events_can_be_recorded_in_any_isolation_level(isolation: str, postgres_url: str, sql: Sql) -> None:
    database = await sql.fetchval("SELECT current_database()")
    await sql.execute(f"ALTER DATABASE \"{database}\" SET default_transaction_isolation = '{isolation}'")
    connection = await asyncpg.connect(postgres_url)
    async with connection.transaction():
        await Outbox().arecord(connection, Event("a", {"n": 1}))
    await connection.close()
    assert await sql.fetchval("SELECT count(*) FROM outbox_message") == 1
