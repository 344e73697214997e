"""A store on its own database, and plain connections."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from pillarbox.stores.postgres import PostgresStore
from tests.databases import Sql
from tests.integration.postgres.logins import ROLES


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_url)
    yield store
    await store.aclose()


@pytest.fixture
async def other_store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_url)
    yield store
    await store.aclose()


@pytest.fixture
async def sql(postgres_url: str) -> AsyncIterator[Sql]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


@pytest.fixture
async def other_session(postgres_url: str) -> AsyncIterator[Sql]:
    """A second plain connection, for tests that hold a lock."""
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


@pytest.fixture
async def roles(postgres_url: str, store: PostgresStore, sql: Sql) -> AsyncIterator[dict[str, str]]:
    """Roles by duty. They belong to the whole server, so they are named after the test's database and dropped again."""
    database = await sql.fetchval("SELECT current_database()")
    names = {duty: f"{database}_{duty}" for duty in (*ROLES, "owner")}
    for name in names.values():
        await sql.execute(f'CREATE ROLE "{name}" LOGIN')
    for kind, query in (
        ("TABLE", "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"),
        ("VIEW", "SELECT viewname FROM pg_views WHERE schemaname = 'public'"),
        ("FUNCTION", "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace"),
    ):
        for row in await sql.fetch(query):
            await sql.execute(f'ALTER {kind} {row[0]} OWNER TO "{names["owner"]}"')
    await sql.execute(f'GRANT CREATE, USAGE ON SCHEMA public TO "{names["owner"]}"')
    await sql.execute(store.schema.roles_sql(**names))
    yield {duty: names[duty] for duty in ROLES}
    for name in names.values():
        await sql.execute(f'DROP OWNED BY "{name}" CASCADE')
    for name in names.values():
        await sql.execute(f'DROP ROLE "{name}"')
