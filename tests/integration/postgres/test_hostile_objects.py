"""A caller's temporary objects must not divert SECURITY DEFINER functions.

PostgreSQL searches the temporary schema first for types and tables unless `search_path` names it, so a SECURITY DEFINER
function that trusts `pg_catalog` alone runs whatever its caller prepared. The test finds the functions in
the catalog, so that it covers a later one as well.
"""

import pytest

from pillarbox.stores.postgres import PostgresStore
from tests.databases import Sql
from tests.integration.postgres.logins import logged_in

DEFINERS = """
SELECT p.oid::regprocedure::text AS name, p.oid, p.proname, p.pronargs, p.proconfig, p.proacl::text[] AS acl,
       ARRAY(SELECT t::regtype::text FROM unnest(p.proargtypes::oid[]) AS t) AS arguments
FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prosecdef ORDER BY p.oid
"""

# Every name that a function could resolve without a schema: a domain runs its CHECK on each cast.
TYPES = (
    *("bool", "bytea", "char", "date", "float8", "int2", "int4", "int8", "integer", "interval", "json", "jsonb"),
    *("name", "numeric", "oid", "record", "regclass", "regproc", "text", "time", "timestamp", "timestamptz", "varchar"),
)

TRAP = """
CREATE FUNCTION pg_temp.trap() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF current_user <> session_user THEN RAISE EXCEPTION 'code of % runs as %', session_user, current_user; END IF;
  RETURN true;
END $$
"""
# A table of this name would list the partitions of the history.
CATALOGS = """
CREATE TEMP TABLE pg_class AS
  SELECT c.oid, 'business_20200101'::name AS relname, c.relnamespace, c.relkind, c.relowner
  FROM pg_catalog.pg_class c;
CREATE TEMP TABLE pg_inherits AS SELECT inhrelid, inhparent, inhseqno FROM pg_catalog.pg_inherits;
CREATE TEMP TABLE pg_namespace AS SELECT oid, 'public'::name AS nspname, nspowner FROM pg_catalog.pg_namespace;
"""
FUNCTIONS = """
CREATE FUNCTION pg_temp.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT CASE WHEN pg_temp.trap() THEN now() END $$;
CREATE FUNCTION pg_temp.to_char(date, text) RETURNS text LANGUAGE sql
  AS $$ SELECT CASE WHEN pg_temp.trap() THEN '20200101' END $$;
CREATE FUNCTION pg_temp.joined(text, text) RETURNS text LANGUAGE sql
  AS $$ SELECT CASE WHEN pg_temp.trap() THEN $1 END $$;
CREATE OPERATOR pg_temp.|| (FUNCTION = pg_temp.joined, LEFTARG = text, RIGHTARG = text);
"""


async def create_hostile_objects(caller: Sql) -> None:
    await caller.execute(TRAP)
    for name in TYPES:
        base = "pg_catalog.int4" if name in ("integer", "record") else f'pg_catalog."{name}"'
        await caller.execute(f'CREATE DOMAIN pg_temp."{name}" AS {base} CHECK (pg_temp.trap())')
    await caller.execute(CATALOGS)
    await caller.execute(FUNCTIONS)


async def test_no_temporary_object_runs_with_the_privileges_of_the_owner(
    postgres_url: str, sql: Sql, roles: dict[str, str]
) -> None:
    await sql.execute("CREATE TABLE business_20200101 (id integer)")
    owner = f"{await sql.fetchval('SELECT current_database()')}_owner"
    await sql.execute(f'ALTER TABLE business_20200101 OWNER TO "{owner}"')
    await sql.execute("DROP TABLE IF EXISTS outbox_history_20200101")
    await sql.execute(
        "CREATE TABLE outbox_history_20200101 PARTITION OF outbox_history "
        "FOR VALUES FROM ('2020-01-01') TO ('2020-01-02')"
    )
    await sql.execute(f'ALTER TABLE outbox_history_20200101 OWNER TO "{owner}"')
    definers = await sql.fetch(DEFINERS)
    assert definers
    async with logged_in(postgres_url, roles["relay"]) as caller:
        await create_hostile_objects(caller)
        for function in definers:
            values = ", ".join(
                {"integer": "30", "interval": "'1 day'", "text": "'x'"}.get(kind, "NULL") + f"::pg_catalog.{kind}"
                for kind in function["arguments"]
            ).replace("pg_catalog.integer", "pg_catalog.int4")
            call = f'SELECT public."{function["proname"]}"({values})'
            for _ in range(2):  # the second call uses cached plans
                await caller.fetch(call)
    assert await sql.fetchval("SELECT to_regclass('business_20200101') IS NOT NULL")
    assert await sql.fetchval("SELECT to_regclass('outbox_history_20200101') IS NULL")


async def test_security_definer_functions_search_the_temporary_schema_last(store: PostgresStore, sql: Sql) -> None:
    await store.schema.apply(aliases=True)
    for function in await sql.fetch(DEFINERS):
        assert "search_path=pg_catalog, pg_temp" in (function["proconfig"] or []), function["name"]


@pytest.mark.parametrize("duty", ["producer", "reader"])
async def test_only_the_relay_role_may_call_security_definer_functions(
    duty: str, sql: Sql, roles: dict[str, str]
) -> None:
    for function in await sql.fetch(DEFINERS):
        for role, expected in ((roles[duty], False), (roles["relay"], True)):
            able = await sql.fetchval("SELECT has_function_privilege($1, $2::oid, 'EXECUTE')", role, function["oid"])
            assert able is expected, function["name"]
