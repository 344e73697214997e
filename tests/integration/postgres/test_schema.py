"""The schema: the same by script and by migrations, safe to apply again and concurrently, never downgraded."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from pillarbox import TableNames
from pillarbox.core.errors import ConfigurationError, SchemaError, StoreUnavailableError
from pillarbox.statements import Names
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.stores.postgres.schema import PostgresSchema
from pillarbox.stores.postgres.statements import PostgresStatements
from tests.databases import Sql, cloned
from tests.integration.postgres.migrations import ADD_INDEX, MIGRATIONS, NEXT, next_release
from tests.servers.debian import PG_DUMP
from tests.servers.postgres import PostgresServer


def dump(url: str) -> str:
    """The schema from pg_dump, without its random tokens."""
    text = subprocess.run([PG_DUMP.path(), "--schema-only", url], check=True, capture_output=True, text=True).stdout
    return "\n".join(line for line in text.splitlines() if not line.startswith(("\\restrict", "\\unrestrict")))


def run_script(url: str, script: str) -> None:
    command = ["psql", "--quiet", "--set", "ON_ERROR_STOP=1", url]
    subprocess.run(command, input=script, text=True, check=True, capture_output=True)


async def applied(url: str, **options: bool) -> list[str]:
    store = PostgresStore(url)
    try:
        return await store.schema.apply(**options)
    finally:
        await store.aclose()


async def test_script_and_migrations_create_the_same_schema(
    postgres_server: PostgresServer, empty_postgres_url: str
) -> None:
    store = PostgresStore(empty_postgres_url)
    with cloned(postgres_server, None) as scripted:
        run_script(scripted, store.schema.sql(aliases=True))
        await store.schema.apply(aliases=True)
        await store.aclose()
        assert dump(scripted) == dump(empty_postgres_url)


async def test_an_upgrade_leads_to_the_schema_of_a_new_installation(
    postgres_server: PostgresServer, empty_postgres_url: str, tmp_path: Path
) -> None:
    with cloned(postgres_server, None) as new:
        async with next_release(new, tmp_path) as schema:
            assert len(await schema.apply()) == len(MIGRATIONS) + 1
        await applied(empty_postgres_url)
        async with next_release(empty_postgres_url, tmp_path) as schema:
            assert await schema.apply() == [NEXT]
            assert (await schema.status()).ok
        assert dump(new) == dump(empty_postgres_url)


async def test_applying_twice_changes_nothing(empty_postgres_url: str) -> None:
    assert await applied(empty_postgres_url)
    before = dump(empty_postgres_url)
    assert await applied(empty_postgres_url) == []
    assert dump(empty_postgres_url) == before


async def test_a_database_that_cannot_store_every_text_is_rejected(postgres_server: PostgresServer, sql: Sql) -> None:
    await sql.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(SchemaError, match="has the encoding LATIN1"):
            await applied(postgres_server.url("latin"))
    finally:
        await sql.execute("DROP DATABASE latin")


async def test_concurrent_processes_run_each_migration_once(empty_postgres_url: str) -> None:
    apply = [sys.executable, "-m", "pillarbox", "schema", "apply", "--json"]
    environment = {"PILLARBOX_STORE": empty_postgres_url, "PYTHONPATH": ":".join(sys.path)}
    running = [
        await asyncio.create_subprocess_exec(*apply, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    outputs = [await process.communicate() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], outputs
    assert sorted(len(json.loads(output)["applied"]) for output, _ in outputs) == [0, 0, len(MIGRATIONS)]


async def test_a_newer_schema_is_rejected(store: PostgresStore, sql: Sql) -> None:
    await sql.execute("INSERT INTO outbox_schema (version, name) VALUES (999, 'from the future')")
    with pytest.raises(SchemaError, match="upgrade Pillarbox"):
        await store.schema.apply()
    with pytest.raises(SchemaError, match="upgrade Pillarbox"):
        await store.schema.check()


async def test_tables_ahead_by_an_additive_migration_are_accepted(store: PostgresStore, sql: Sql) -> None:
    await sql.execute("INSERT INTO outbox_schema (version, name) VALUES (-999, 'from the future')")
    await store.schema.check()
    assert await store.schema.apply() == []
    assert (await store.schema.status()).version == 999
    [version] = [check for check in store.diagnosis.checks() if check.name == "store.schema"]
    found = await version.ask()
    assert found.result == "pass"
    assert "additive" in found.message
    await sql.execute("INSERT INTO outbox_schema (version, name) VALUES (998, 'not additive')")
    with pytest.raises(SchemaError, match="upgrade Pillarbox"):
        await store.schema.check()


async def test_downgrades_undo_the_migrations_one_by_one(postgres_url: str, sql: Sql, store: PostgresStore) -> None:
    """Also the compatibility views and a concurrent index are gone; `apply` then leads to the same schema again."""
    before = dump(postgres_url)
    for script in store.schema.downgrades(to=0):
        async with sql.transaction():
            for statement in script.statements:
                await sql.execute(statement)
        assert (await store.schema.status()).version == script.version - 1
    assert "outbox" not in dump(postgres_url)
    assert await applied(postgres_url, aliases=True) == [path.stem for path in MIGRATIONS]
    assert dump(postgres_url) == before


@pytest.mark.parametrize("aliases", [False, True])
async def test_a_downgrade_drops_nothing_of_the_application(empty_postgres_url: str, aliases: bool) -> None:
    store, connection = PostgresStore(empty_postgres_url), await asyncpg.connect(empty_postgres_url)
    try:
        if aliases:
            await store.schema.apply(aliases=True)
            await connection.execute("INSERT INTO event_outbox_archive (id) VALUES ('kept')")
        else:
            await store.schema.apply()
            for name in ("event_outbox", "event_outbox_archive", "event_outbox_moved", "processed_event"):
                await connection.execute(f"CREATE TABLE {name} (id text)")
            await connection.execute("CREATE VIEW event_outbox_dlq AS SELECT 1 AS id")
        for script in store.schema.downgrades(to=0):
            for statement in script.statements:
                await connection.execute(statement)
        kept = await connection.fetch("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
    finally:
        await connection.close()
        await store.aclose()
    own = ["event_outbox", "event_outbox_archive", "event_outbox_dlq", "event_outbox_moved", "processed_event"]
    assert sorted(str(name) for (name,) in kept) == (["event_outbox_archive"] if aliases else own)


async def test_a_downgrade_keeps_pending_events_unless_they_are_discarded(sql: Sql, store: PostgresStore) -> None:
    await sql.execute("SELECT outbox_record('a', '{}')")
    undo, last = store.schema.downgrades(to=0)
    with pytest.raises(asyncpg.RaiseError, match="events are pending"):
        async with sql.transaction():
            for statement in (*undo.statements, *last.statements):
                await sql.execute(statement)
    assert await sql.fetchval("SELECT count(*) FROM outbox_message") == 1
    for script in store.schema.downgrades(to=0, discard_pending=True):
        for statement in script.statements:
            await sql.execute(statement)
    assert (await store.schema.status()).version == 0


async def test_other_tools_get_no_concurrent_statements(postgres_url: str, sql: Sql, tmp_path: Path) -> None:
    async with next_release(postgres_url, tmp_path, ADD_INDEX) as schema:
        [script] = schema.scripts(since=len(MIGRATIONS))
        async with sql.transaction():
            for statement in script.statements:
                await sql.execute(statement)
        assert (await schema.status()).ok


@pytest.mark.parametrize("version", [-1, 99])
def test_an_unknown_version_is_an_error(version: int) -> None:
    schema = PostgresStore("postgresql://localhost/unused").schema
    with pytest.raises(ConfigurationError, match=f"no schema version {version}"):
        schema.scripts(since=version)
    with pytest.raises(ConfigurationError, match=f"no schema version {version}"):
        schema.downgrades(to=version)


async def test_an_older_schema_is_named(postgres_url: str, tmp_path: Path) -> None:
    async with next_release(postgres_url, tmp_path) as schema:
        with pytest.raises(SchemaError, match="pillarbox schema apply"):
            await schema.check()
        status = await schema.status()
    assert (status.version, status.pending, status.ok) == (len(MIGRATIONS), (NEXT,), False)


async def test_a_failed_migration_leaves_nothing(postgres_url: str, sql: Sql, tmp_path: Path) -> None:
    script = "ALTER TABLE {request} ADD COLUMN urgency integer;\nSELECT 1 / 0;\n"
    async with next_release(postgres_url, tmp_path, script) as schema:
        with pytest.raises(StoreUnavailableError, match="division by zero"):
            await schema.apply()
        assert (await schema.status()).pending == (NEXT,)
    columns = "SELECT count(*) FROM information_schema.columns WHERE column_name = 'urgency'"
    assert await sql.fetchval(columns) == 0


async def test_missing_tables_are_an_error_with_advice(empty_postgres_url: str) -> None:
    store = PostgresStore(empty_postgres_url)
    with pytest.raises(SchemaError, match="pillarbox schema apply"):
        await store.lanes.acquire("a", limit=1)
    with pytest.raises(SchemaError, match="pillarbox schema apply"):
        await store.schema.check()
    await store.aclose()


async def test_apply_times_out_on_a_locked_table(postgres_url: str, other_session: Sql) -> None:
    """A change that waits for a lock would block every later writer."""
    holding = other_session.transaction()
    await holding.start()
    await other_session.execute("INSERT INTO outbox_message (event_type, payload) VALUES ('a', '{}')")
    other_limit = PostgresStore(postgres_url, max_payload=2048)
    try:
        with pytest.raises(StoreUnavailableError, match="lock timeout"):
            await other_limit.schema.apply()
    finally:
        await other_limit.aclose()
        await holding.rollback()


async def test_an_invalid_index_is_rebuilt(postgres_url: str, sql: Sql, tmp_path: Path) -> None:
    async with next_release(postgres_url, tmp_path, ADD_INDEX) as schema:
        assert await schema.apply() == [NEXT]
        await sql.execute(f"DELETE FROM outbox_schema WHERE name = '{NEXT}'")
        index = "indexrelid = 'outbox_audit_subject_idx'::regclass"
        await sql.execute(f"UPDATE pg_index SET indisvalid = false WHERE {index}")
        assert await schema.apply() == [NEXT]
        assert await sql.fetchval(f"SELECT indisvalid FROM pg_index WHERE {index}")


async def test_only_migrations_have_a_long_timeout(empty_postgres_url: str) -> None:
    sql = await asyncpg.connect(empty_postgres_url)
    await sql.execute("""
        CREATE TABLE seen (statement_timeout text);
        CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql
            AS $$BEGIN INSERT INTO public.seen VALUES (current_setting('statement_timeout')); END$$;
        CREATE EVENT TRIGGER views ON ddl_command_end WHEN TAG IN ('CREATE VIEW') EXECUTE FUNCTION note();
    """)
    await sql.close()
    connection = PostgresStoreConnection(empty_postgres_url, statement_timeout="1s")
    try:
        schema = PostgresSchema(connection, PostgresStatements(Names(schema="public")), max_payload=1024)
        assert await schema.apply() == [path.stem for path in MIGRATIONS]
        [limits] = await connection.fetch("SELECT DISTINCT statement_timeout FROM public.seen")
        assert tuple(limits) == ("0",)
        assert [tuple(row) for row in await connection.fetch("SHOW statement_timeout")] == [("1s",)]
    finally:
        await connection.aclose()


OBJECTS = """
SELECT CASE relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'table' WHEN 'v' THEN 'view' WHEN 'S' THEN 'sequence'
       WHEN 'i' THEN 'index' WHEN 'I' THEN 'index' ELSE relkind::text END AS kind, relname
  FROM pg_class WHERE relnamespace = 'public'::regnamespace
UNION ALL SELECT 'function', proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
-- The type of an array has the name of its element after an underscore.
UNION ALL SELECT 'type', typname FROM pg_type WHERE typnamespace = 'public'::regnamespace AND typcategory <> 'A'
UNION ALL SELECT 'trigger', tgname FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT 'statistics', stxname FROM pg_statistic_ext
UNION ALL SELECT 'operator', oprname FROM pg_operator WHERE oprnamespace = 'public'::regnamespace
UNION ALL SELECT 'collation', collname FROM pg_collation WHERE collnamespace = 'public'::regnamespace
UNION ALL SELECT 'schema', nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
UNION ALL SELECT 'event trigger', evtname FROM pg_event_trigger
UNION ALL SELECT 'policy', polname FROM pg_policy
UNION ALL SELECT 'rule', rulename FROM pg_rewrite WHERE rulename <> '_RETURN'
UNION ALL SELECT 'extension', extname FROM pg_extension
UNION ALL SELECT 'publication', pubname FROM pg_publication
"""


@pytest.mark.parametrize("prefix", [TableNames().prefix, "Shop_"])
async def test_every_object_in_the_database_begins_with_the_prefix(empty_postgres_url: str, prefix: str) -> None:
    sql = await asyncpg.connect(empty_postgres_url)
    before = {tuple(row) for row in await sql.fetch(OBJECTS)}
    store = PostgresStore(empty_postgres_url, tables=TableNames(prefix=prefix))
    await store.schema.apply()
    await store.aclose()
    made = {tuple(row) for row in await sql.fetch(OBJECTS)} - before
    await sql.close()
    assert {"table", "view", "index", "sequence", "function", "type"} <= {kind for kind, _ in made}
    assert sorted(one for one in made if not one[1].startswith(prefix)) == []


async def test_prefix_and_schema_can_be_chosen(empty_postgres_url: str) -> None:
    """Two outboxes in one database are independent."""
    for prefix, schema in (("Shop_outbox_", "public"), ("outbox_", "Billing")):
        store = PostgresStore(empty_postgres_url, tables=TableNames(prefix=prefix, schema=schema))
        await store.schema.apply(aliases=True)
        await store.schema.check()
        await store.aclose()
    sql = await asyncpg.connect(empty_postgres_url)
    indexes = await sql.fetch("SELECT indexname FROM pg_indexes WHERE schemaname = 'public'")
    assert [row[0] for row in indexes if not row[0].startswith("Shop_")] == []
    await sql.execute("INSERT INTO \"Shop_outbox_message\" (event_type, payload) VALUES ('a', '{}')")
    assert await sql.fetchval('SELECT count(*) FROM "Shop_outbox_events"') == 1
    assert await sql.fetchval('SELECT count(*) FROM "Billing".outbox_event') == 0
    assert await sql.fetchval('SELECT count(*) FROM "Shop_processed_event"') == 0
    await sql.close()


async def test_the_limit_of_payloads_can_be_changed(postgres_url: str, sql: Sql) -> None:
    insert = "INSERT INTO outbox_message (event_type, payload) VALUES ('a', $1)"
    small = PostgresStore(postgres_url, max_payload=1024)
    with pytest.raises(SchemaError, match=r"1048576.*1024"):
        await small.schema.check()
    await small.schema.apply()
    await small.schema.check()
    await sql.execute(insert, bytes(1024))
    with pytest.raises(asyncpg.CheckViolationError, match="payload"):
        await sql.execute(insert, bytes(1025))
    await small.aclose()


async def test_another_hash_function_for_lanes_is_detected(store: PostgresStore, sql: Sql) -> None:
    await sql.execute("UPDATE outbox_schema SET lane_hash = lane_hash + 1")
    with pytest.raises(SchemaError, match="drain the outbox"):
        await store.schema.check()


async def test_missing_lanes_are_detected(store: PostgresStore, sql: Sql) -> None:
    await sql.execute("DELETE FROM outbox_lane WHERE lane = 63")
    with pytest.raises(SchemaError, match="64 rows"):
        await store.schema.check()
