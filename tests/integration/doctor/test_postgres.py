"""Checks of PostgreSQL: each fails on a server with its problem and passes after the fix."""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from urllib.parse import urlsplit

import psycopg
import pytest

from pillarbox.admin.diagnosis import CheckResult
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.postgres.connection import SETTINGS
from pillarbox.testing.waiting import eventually
from tests.databases import Sql
from tests.integration.doctor.asking import ask
from tests.servers import processes
from tests.servers.availability import available
from tests.servers.pgbouncer import PgBouncer
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer


async def asked(store: PostgresStore, check: str, *, long_transaction: float = 300) -> CheckResult:
    return await ask(store.diagnosis.checks(long_transaction=long_transaction), check)


async def test_a_server_is_named_with_its_database_and_role(store: PostgresStore, sql: Sql) -> None:
    found = await asked(store, "store.reachable")
    database = await sql.fetchval("SELECT current_database()")
    assert (found.result, found.message.split(", ")[1:]) == ("pass", [f"database {database}", "as postgres"])


async def test_an_unavailable_server_fails_without_its_password() -> None:
    async with aclosing(PostgresStore(f"postgresql://app:secret@127.0.0.1:{free_port()}/shop")) as store:
        found = await asked(store, "store.reachable")
    assert (found.result, "ConnectionRefusedError" in found.message) == ("fail", True)
    assert "secret" not in found.message + found.fix


async def test_a_read_only_database_fails(store: PostgresStore, sql: Sql) -> None:
    assert (await asked(store, "store.primary")).result == "pass"
    database = await sql.fetchval("SELECT current_database()")
    await sql.execute(f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
    async with aclosing(store.clone()) as later:
        found = await asked(later, "store.primary")
    assert (found.result, "read-only" in found.message) == ("fail", True)


@pytest.fixture(scope="module")
def standby() -> Iterator[str]:
    """The URL of a standby server."""
    with available(lambda: PostgresServer(durable=False)) as primary:
        primary.stop()
        marker = primary.data / "standby.signal"
        marker.touch()
        processes.hand_over(marker)
        primary.start()
        yield primary.url()


async def test_a_standby_instead_of_the_primary_fails(standby: str) -> None:
    async with aclosing(PostgresStore(standby)) as store:
        assert (await asked(store, "store.reachable")).result == "pass"
        found = await asked(store, "store.primary")
    assert (found.result, "standby" in found.message, "primary" in found.fix) == ("fail", True, True)


async def test_a_server_without_fsync_fails(store: PostgresStore) -> None:
    found = await asked(store, "store.durability")
    assert (found.result, found.message.split(" off")[0]) == ("fail", "fsync and full_page_writes are")
    assert found.fix == "set them to on in postgresql.conf, and reload"


@pytest.fixture
def durable() -> Iterator[str]:
    with available(PostgresServer) as server:
        yield server.url()


async def test_asynchronous_commit_is_a_warning(durable: str) -> None:
    async with aclosing(PostgresStore(durable)) as store:
        assert (await asked(store, "store.durability")).result == "pass"
        with psycopg.connect(durable, autocommit=True) as plain:
            plain.execute("ALTER ROLE postgres SET synchronous_commit = off")
        async with aclosing(store.clone()) as later:
            found = await asked(later, "store.durability")
    assert (found.result, "synchronous_commit is off" in found.message) == ("warn", True)


async def test_a_missing_privilege_of_a_relay_fails_with_its_name(
    store: PostgresStore, sql: Sql, postgres_url: str
) -> None:
    assert (await asked(store, "store.grants")).result == "pass"
    role = f"{await sql.fetchval('SELECT current_database()')}_relay"
    await sql.execute(f'CREATE ROLE "{role}" LOGIN')
    others = dict.fromkeys(("producer", "reader", "migrator", "owner"), "postgres")
    grants = store.schema.roles_sql(relay=role, **others).replace('GRANT "postgres" TO "postgres";', "")
    await sql.execute(grants)
    try:
        async with aclosing(PostgresStore(postgres_url.replace("postgres@", f"{role}@"))) as relay:
            found = {check.name: await check.ask() for check in relay.diagnosis.checks()}
            assert [name for name, answer in found.items() if answer.result == "fail"] == ["store.durability"]
            assert (await relay.diagnosis.retried()).messages == 0
            await sql.execute(f'REVOKE DELETE ON outbox_message FROM "{role}"')
            await sql.execute(f'REVOKE EXECUTE ON FUNCTION outbox_history_create(integer) FROM "{role}"')
            lacking = await asked(relay, "store.grants")
            assert lacking.result == "fail"
            assert lacking.message == "the role lacks DELETE on outbox_message, EXECUTE on outbox_history_create"
            await sql.execute(f'REVOKE USAGE ON SCHEMA public FROM PUBLIC, "{role}"')
            assert "USAGE on public" in (await asked(relay, "store.grants")).message
            await sql.execute(grants)
            assert (await asked(relay, "store.grants")).result == "pass"
    finally:
        await sql.execute(f'DROP OWNED BY "{role}"')
        await sql.execute(f'DROP ROLE "{role}"')


async def test_missing_tables_fail(empty_postgres_url: str) -> None:
    async with aclosing(PostgresStore(empty_postgres_url)) as store:
        assert (await asked(store, "store.schema")).message == "there are no tables"
        assert (await asked(store, "store.grants")).result == "pass"
        await store.schema.apply()
        assert (await asked(store, "store.schema")).result == "pass"


async def test_a_changed_table_fails(store: PostgresStore, sql: Sql) -> None:
    assert (await asked(store, "store.tables")).result == "pass"
    await sql.execute("DELETE FROM outbox_lane WHERE lane = 7")
    found = await asked(store, "store.tables")
    assert (found.result, "64 rows" in found.message) == ("fail", True)


async def test_a_dropped_index_fails_with_its_name(store: PostgresStore, sql: Sql) -> None:
    assert (await asked(store, "store.indexes")).result == "pass"
    made = await sql.fetchval("SELECT pg_get_indexdef('outbox_message_ready_idx'::regclass)")
    await sql.execute("DROP INDEX outbox_message_ready_idx")
    found = await asked(store, "store.indexes")
    assert (found.result, "outbox_message_ready_idx (missing)" in found.message) == ("fail", True)
    await sql.execute(made)
    assert (await asked(store, "store.indexes")).result == "pass"


async def test_an_invalid_index_fails_with_its_name(store: PostgresStore, sql: Sql) -> None:
    await sql.execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'outbox_dead_letter_key_idx'::regclass"
    )
    found = await asked(store, "store.indexes")
    assert (found.result, "outbox_dead_letter_key_idx (invalid)" in found.message) == ("fail", True)


async def test_autovacuum_disabled_for_a_table_fails(store: PostgresStore, sql: Sql) -> None:
    assert (await asked(store, "store.autovacuum")).result == "pass"
    await sql.execute("ALTER TABLE outbox_message SET (autovacuum_enabled = false)")
    found = await asked(store, "store.autovacuum")
    assert (found.result, "outbox_message" in found.message) == ("fail", True)
    await sql.execute("ALTER TABLE outbox_message RESET (autovacuum_enabled)")
    assert (await asked(store, "store.autovacuum")).result == "pass"


async def test_autovacuum_that_runs_too_rarely_is_a_warning(store: PostgresStore, sql: Sql) -> None:
    await sql.execute("ALTER TABLE outbox_message RESET (autovacuum_vacuum_scale_factor)")
    assert (await asked(store, "store.autovacuum")).result == "warn"


async def test_dead_rows_that_are_not_vacuumed_are_a_warning(store: PostgresStore, sql: Sql) -> None:
    assert (await asked(store, "store.bloat")).result == "pass"
    await sql.execute("ALTER TABLE outbox_message SET (autovacuum_enabled = false)")
    await sql.execute(
        "INSERT INTO outbox_message (event_type, payload) SELECT 'a', '{}' FROM generate_series(1, 21000);"
        "DELETE FROM outbox_message; SELECT pg_stat_force_next_flush()"
    )

    async def reported() -> bool:
        return "outbox_message holds about 21,000 dead rows" in (await asked(store, "store.bloat")).message

    await eventually(reported)
    assert (await asked(store, "store.bloat")).result == "warn"
    await sql.execute("VACUUM outbox_message")

    async def mended() -> bool:
        return (await asked(store, "store.bloat")).result == "pass"

    await eventually(mended)


async def test_a_long_transaction_is_a_warning_with_its_pid(store: PostgresStore, sql: Sql) -> None:
    transaction = sql.transaction(isolation="repeatable_read")
    await transaction.start()
    await sql.fetch("SELECT 'a secret', " + " + ".join("1" * 200))
    pid = await sql.fetchval("SELECT pg_backend_pid()")
    await sql.fetch("SELECT 'a secret', " + " + ".join("1" * 200))
    assert (await asked(store, "store.horizon")).result == "pass"
    found = await asked(store, "store.horizon", long_transaction=0)
    assert (found.result, f"pid {pid} (postgres" in found.message) == ("warn", True)
    assert "SELECT '…', 1 + 1 +" in found.message
    assert "a secret" not in found.message
    assert len(found.message) < 400
    await transaction.rollback()
    assert (await asked(store, "store.horizon", long_transaction=0)).result == "pass"


async def test_sessions_that_the_role_cannot_see_are_a_warning(
    store: PostgresStore, sql: Sql, postgres_url: str
) -> None:
    role = f"{await sql.fetchval('SELECT current_database()')}_blind"
    await sql.execute(f'CREATE ROLE "{role}" LOGIN')
    try:
        async with aclosing(PostgresStore(postgres_url.replace("postgres@", f"{role}@"))) as blind:
            found = await asked(blind, "store.horizon")
            assert (found.result, "pg_read_all_stats" in found.fix) == ("warn", True)
            await sql.execute(f'GRANT pg_read_all_stats TO "{role}"')
            assert (await asked(blind, "store.horizon")).result == "pass"
    finally:
        await sql.execute(f'DROP ROLE "{role}"')


async def test_the_sizes_list_tables_days_and_the_oldest_transaction(store: PostgresStore, sql: Sql) -> None:
    await store.schema.prepare()
    transaction = sql.transaction(isolation="repeatable_read")
    await transaction.start()
    await sql.fetchval("SELECT count(*) FROM outbox_dead_letter WHERE error = 'a secret value'")
    found = await store.diagnosis.table_sizes()
    parts = {part.name: part for part in found.parts}
    assert {"outbox_message", "outbox_dead_letter", "outbox_inbox", "outbox_ledger"} <= set(parts)
    assert {part.partition_of for name, part in parts.items() if name.startswith("outbox_history_")} == {
        "outbox_history"
    }
    assert len([part for part in found.parts if part.partition_of]) > 7
    assert found.bytes == sum(part.bytes for part in found.parts) > 100_000
    assert found.oldest is not None
    assert found.oldest.pid == await sql.fetchval("SELECT pg_backend_pid()")
    assert "secret" not in found.oldest.query
    await transaction.rollback()
    assert (await store.diagnosis.table_sizes()).oldest is None


async def test_an_abandoned_prepared_transaction_fails_with_its_name(store: PostgresStore, sql: Sql) -> None:
    assert (await asked(store, "store.prepared", long_transaction=0)).result == "pass"
    name = await sql.fetchval("SELECT current_database() || '_forgotten'")
    await sql.execute("BEGIN; SELECT txid_current()")
    await sql.execute(f"PREPARE TRANSACTION '{name}'")
    try:
        assert (await asked(store, "store.prepared")).result == "pass"
        found = await asked(store, "store.prepared", long_transaction=0)
    finally:
        await sql.execute(f"ROLLBACK PREPARED '{name}'")
    assert (found.result, repr(name) in found.message) == ("fail", True)
    assert (await asked(store, "store.prepared", long_transaction=0)).result == "pass"


async def test_a_day_without_a_partition_is_a_warning(store: PostgresStore, sql: Sql) -> None:
    assert (await asked(store, "store.history")).result == "pass"
    for (day,) in await sql.fetch(
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'outbox_history'::regclass"
        " AND inhrelid::regclass::text ~ '[0-9]{8}'"
    ):
        await sql.execute(f"DROP TABLE {day}")
    assert (await asked(store, "store.history")).result == "warn"
    await store.schema.prepare()
    assert (await asked(store, "store.history")).result == "pass"


@asynccontextmanager
async def pooled_store(pooler: PgBouncer, url: str) -> AsyncIterator[PostgresStore]:
    async with aclosing(PostgresStore(pooler.url(urlsplit(url).path.removeprefix("/")))) as store:
        yield store


async def test_a_pooler_that_rejects_the_settings_of_a_relay_fails(pgbouncer: PgBouncer, postgres_url: str) -> None:
    async with pooled_store(pgbouncer, postgres_url) as store:
        found = await asked(store, "store.reachable")
    assert (found.result, found.message.startswith("the connection goes through a pooler")) == ("fail", True)
    assert "pool_mode = session" in found.fix


@pytest.mark.parametrize(("mode", "result"), [("transaction", "fail"), ("statement", "fail"), ("session", "warn")])
async def test_the_mode_of_a_pooler_determines_the_result(
    postgres_server: PostgresServer, postgres_url: str, mode: str, result: str
) -> None:
    with available(lambda: PgBouncer(postgres_server, ignored=[*SETTINGS, "pillarbox.internal"])) as pooler:
        with psycopg.connect(pooler.url("pgbouncer"), autocommit=True) as console:
            console.execute(f"SET pool_mode = '{mode}'".encode())
        async with pooled_store(pooler, postgres_url) as store:
            check = "store.reachable" if mode == "statement" else "store.pooling"
            found = await asked(store, check)
    assert (found.result, "pooler" in found.message) == (result, True)


async def test_without_a_pooler_the_check_passes(store: PostgresStore) -> None:
    assert (await asked(store, "store.pooling")).result == "pass"
