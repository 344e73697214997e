"""Migrations: repeatable, resumable, by one process at a time."""

import asyncio
import subprocess
from contextlib import aclosing

import pytest

from pillarbox import TableNames
from pillarbox.core.errors import ConfigurationError, SchemaError
from pillarbox.dialects.mariadb import DIALECT
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.stores.mariadb.connection import MariaDBStoreConnection
from pillarbox.stores.mariadb.migrations import MariaDBMigrations
from pillarbox.stores.mariadb.schema import MariaDBSchema
from pillarbox.stores.mariadb.statements import MariaDBStatements
from tests.integration.mariadb.session import Session
from tests.servers.mariadb import MariaDBServer

STATEMENTS = MariaDBStatements(DIALECT.names(TableNames()))
NAMES = [name for name, _ in STATEMENTS.migrations().values()]


async def test_an_interrupted_migration_continues(empty_mariadb_url: str) -> None:
    """MariaDB commits after each statement: wherever the process ends, the next one carries on."""
    scripts = MariaDBMigrations(STATEMENTS).scripts()
    # Without the registration of the last migration.
    statements = [statement for script in scripts for statement in script.statements][:-1]
    for done in (1, 2, len(statements) // 2, len(statements) - 1):
        async with Session(empty_mariadb_url) as session:
            await session.execute("SET SESSION sql_mode = 'STRICT_ALL_TABLES,ANSI_QUOTES,PIPES_AS_CONCAT'")
            for statement in statements[:done]:
                await session.execute(statement)
    async with aclosing(MariaDBStore(empty_mariadb_url)) as store:
        assert await store.schema.apply() == NAMES[-1:]
        assert await store.schema.apply() == []
        await store.schema.check()


async def test_processes_apply_the_schema_one_after_another(empty_mariadb_url: str) -> None:
    stores = [MariaDBStore(empty_mariadb_url) for _ in range(4)]
    ran = await asyncio.gather(*(store.schema.apply() for store in stores))
    assert sorted(ran) == [[], [], [], NAMES]
    for store in stores:
        await store.schema.check()
        await store.aclose()


async def test_a_failed_migration_releases_the_lock(empty_mariadb_url: str) -> None:
    connection = MariaDBStoreConnection(empty_mariadb_url)
    broken = {1: ("0001_broken", "CREATE TABLE IF NOT EXISTS outbox_relay (id INT);\nNONSENSE;\n")}
    with pytest.raises(Exception, match="syntax"):
        await MariaDBSchema(connection, STATEMENTS, migrations=broken).apply()
    async with Session(empty_mariadb_url) as session:
        assert await session.value("SELECT version FROM outbox_schema UNION SELECT 0") == 0
        await session.execute("DROP TABLE outbox_relay")
    async with aclosing(MariaDBStore(empty_mariadb_url)) as store:
        assert await store.schema.apply() == NAMES
    await connection.aclose()


async def test_tables_of_a_later_release_are_rejected(store: MariaDBStore, sql: Session) -> None:
    await sql.execute("INSERT INTO outbox_schema (version, name) VALUES (99, 'later')")
    with pytest.raises(SchemaError, match="upgrade Pillarbox"):
        await store.schema.apply()


async def test_tables_ahead_by_an_additive_migration_are_accepted(store: MariaDBStore, sql: Session) -> None:
    await sql.execute("INSERT INTO outbox_schema (version, name) VALUES (-99, 'later')")
    await store.schema.check()
    assert await store.schema.apply() == []
    assert (await store.schema.status()).version == 99


async def test_an_interrupted_downgrade_continues(store: MariaDBStore, sql: Session) -> None:
    statements = [one for script in store.schema.downgrades(to=0) for one in script.statements]
    await sql.insert(1)
    with pytest.raises(Exception, match="events are pending"):
        for statement in statements:
            await sql.execute(statement)
    await sql.execute("DELETE FROM outbox_message")
    for done in (*range(1, len(statements)), len(statements)):
        for statement in [one for one in statements[:done] if "DELETE FROM `outbox_schema`" not in one]:
            await sql.execute(statement)
    assert (await store.schema.status()).version == 0
    assert await sql.execute("SHOW TABLES") == []


async def test_missing_lanes_and_another_engine_are_problems(store: MariaDBStore, sql: Session) -> None:
    await sql.execute("DELETE FROM outbox_lane WHERE lane = 5")
    await sql.execute("ALTER TABLE outbox_sample ENGINE = Aria")
    problems = (await store.schema.status()).problems
    assert any("64 rows" in problem for problem in problems)
    assert any("outbox_sample" in problem and "InnoDB" in problem for problem in problems)


async def test_the_script_creates_the_tables_in_the_shell(
    empty_mariadb_url: str, mariadb_server: MariaDBServer
) -> None:
    async with aclosing(MariaDBStore(empty_mariadb_url)) as store:
        script = store.schema.sql()
        database = empty_mariadb_url.rpartition("/")[2]
        shell = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{mariadb_server.port}", "-uroot", database]
        await asyncio.to_thread(subprocess.run, shell, input=script, text=True, check=True)
        await store.schema.check()


async def test_there_are_no_compatibility_views(store: MariaDBStore) -> None:
    with pytest.raises(ConfigurationError, match="no compatibility views"):
        await store.schema.apply(aliases=True)
    with pytest.raises(ConfigurationError, match="no compatibility views"):
        store.schema.sql(aliases=True)


@pytest.mark.parametrize("charset", ["latin1", "utf8mb4", "ucs2"])
async def test_the_charset_of_the_database_does_not_matter(mariadb_server: MariaDBServer, charset: str) -> None:
    name = f"charset_{charset}"
    mariadb_server.execute(f"CREATE DATABASE {name} CHARACTER SET {charset}")
    try:
        async with aclosing(MariaDBStore(mariadb_server.url(name))) as store, Session(mariadb_server.url(name)) as sql:
            await store.schema.apply()
            await sql.execute(
                "INSERT INTO outbox_message (event_type, payload, ordering_key) VALUES ('ä', '1', 'ß🎉 ')"
            )
            [(key, lane)] = await sql.execute("SELECT `key`, lane FROM outbox_message")
            assert key.decode() == "ß🎉 "
            assert 0 <= lane < 64
    finally:
        mariadb_server.drop_database(name)
