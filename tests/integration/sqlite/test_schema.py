"""The schema: script and `apply` agree, each migration runs once, and it is never downgraded."""

import asyncio
import sqlite3
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path

import pytest

import pillarbox.stores.sqlite
from pillarbox import TableNames
from pillarbox.core.clock import SystemClock
from pillarbox.core.errors import ConfigurationError, SchemaError, StoreUnavailableError
from pillarbox.plugins import StoreOptions
from pillarbox.statements import Names
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.stores.sqlite.connection import SqliteStoreConnection
from pillarbox.stores.sqlite.schema import SqliteSchema
from pillarbox.stores.sqlite.statements import SqliteStatements
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.lookup import dead_letters
from tests.integration.sqlite.conftest import Shell

STEPS = len(list((Path(pillarbox.stores.sqlite.__file__).parent / "sql" / "migrations").glob("*.sql")))
NEXT = f"{STEPS + 1:04}_next"
"""The name of a further migration."""

APPLY = """
import asyncio, sys
from pillarbox.stores.sqlite import SqliteStore

async def main():
    store = SqliteStore(sys.argv[1])
    print("here", flush=True)
    sys.stdin.readline()
    print(len(await store.schema.apply()))
    await store.schema.check()
    await store.aclose()

asyncio.run(main())
"""


@asynccontextmanager
async def next_release(path: Path, folder: Path) -> AsyncIterator[SqliteSchema]:
    """The schema of a release that has a further migration, written to `folder`."""
    script = "-- A further column.\nALTER TABLE {request} ADD COLUMN urgency INTEGER;\n"
    (folder / f"{NEXT}.sql").write_text(script, encoding="utf-8")
    statements = SqliteStatements(Names())
    connection = SqliteStoreConnection(path, statements, busy_timeout=5, clock=SystemClock())
    try:
        yield SqliteSchema(
            connection, statements, max_payload=StoreOptions.max_payload, migrations=statements.migrations(folder)
        )
    finally:
        await connection.aclose()


def _schema(path: Path) -> list[tuple[str, str, str]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize("aliases", [False, True])
async def test_script_and_apply_create_the_same_schema(tmp_path: Path, shell: Shell, aliases: bool) -> None:
    store = SqliteStore(tmp_path / "applied.db")
    await store.schema.apply(aliases=aliases)
    shell(store.schema.sql(aliases=aliases))
    await store.aclose()
    typed = SqliteStore(tmp_path / "shop.db")
    await typed.schema.check()
    assert await typed.schema.apply(aliases=aliases) == []
    await typed.aclose()
    assert _schema(tmp_path / "applied.db") == _schema(tmp_path / "shop.db")


async def test_concurrent_processes_run_each_migration_once(path: Path) -> None:
    # All wait for the last one, so that they start together on a missing file.
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", APPLY, str(path), stdin=PIPE, stdout=PIPE)
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"here\n"
    outputs = await asyncio.gather(*(process.communicate(b"\n") for process in processes))
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sorted(int(out.split()[-1]) for out, _ in outputs) == [0, 0, STEPS]


async def test_an_upgrade_leads_to_the_schema_of_a_new_installation(
    store: SqliteStore, path: Path, tmp_path: Path
) -> None:
    async with next_release(tmp_path / "new.db", tmp_path) as schema:
        assert len(await schema.apply()) == STEPS + 1
    async with next_release(path, tmp_path) as schema:
        assert await schema.apply() == [NEXT]
        await schema.check()
    assert _schema(path) == _schema(tmp_path / "new.db")


async def test_an_older_schema_is_named(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    async with next_release(path, tmp_path) as schema:
        with pytest.raises(SchemaError, match="pillarbox schema apply"):
            await schema.check()
        status = await schema.status()
    assert (status.version, status.pending, status.ok) == (STEPS, (NEXT,), False)


async def test_a_newer_schema_is_rejected(store: SqliteStore, sql: sqlite3.Connection) -> None:
    sql.execute("INSERT INTO outbox_schema (version, name) VALUES (99, '0099_future')")
    with pytest.raises(SchemaError, match="upgrade Pillarbox"):
        await store.schema.apply()
    with pytest.raises(SchemaError, match="upgrade Pillarbox"):
        await store.schema.check()
    assert not (await store.schema.status()).ok


async def test_tables_ahead_by_an_additive_migration_are_accepted(store: SqliteStore, sql: sqlite3.Connection) -> None:
    sql.execute("INSERT INTO outbox_schema (version, name) VALUES (-99, '0099_future')")
    await store.schema.check()
    assert await store.schema.apply() == []
    assert (await store.schema.status()).version == 99


async def test_downgrades_undo_the_migrations(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    async with aclosing(SqliteStore(path)) as store:
        await store.schema.apply(aliases=True)
        statements = [one for script in store.schema.downgrades(to=0) for one in script.statements]
        with closing(sqlite3.connect(path, isolation_level=None)) as sql:
            sql.execute("INSERT INTO outbox_message (event_type, payload) VALUES ('a', '{}')")
            for _ in range(2):
                sql.execute("BEGIN")
                with pytest.raises(sqlite3.IntegrityError, match="events are pending"):
                    for statement in statements:
                        sql.execute(statement)
                sql.execute("ROLLBACK")
            sql.execute("DELETE FROM outbox_message")
            for statement in statements:
                sql.execute(statement)
        # Operators have filled the archive.
        assert [name for _, name, _ in _schema(path) if not name.startswith("sqlite_")] == ["event_outbox_archive"]


async def test_missing_tables_are_an_error_with_advice(path: Path) -> None:
    store = SqliteStore(path)
    with pytest.raises(SchemaError, match="pillarbox schema apply"):
        await dead_letters(store)
    with pytest.raises(SchemaError, match="pillarbox schema apply"):
        await store.schema.check()
    assert (await store.schema.status()).version == 0
    await store.aclose()


async def test_a_dropped_index_is_named(store: SqliteStore, sql: sqlite3.Connection) -> None:
    sql.execute("DROP INDEX outbox_message_due_idx")
    with pytest.raises(SchemaError, match="the index outbox_message_due_idx is missing"):
        await store.schema.check()


async def test_another_payload_limit_is_reported_until_it_is_applied(store: SqliteStore, path: Path) -> None:
    other = SqliteStore(path, max_payload=10)
    with pytest.raises(SchemaError, match="limit for payloads"):
        await other.schema.check()
    assert await other.schema.apply() == []
    await other.schema.check()
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="max_payload, 10 bytes"):
        connection.execute("INSERT INTO outbox_message (event_type, payload) VALUES ('t', 'eleven bytes')")
    connection.close()
    await other.aclose()


async def test_a_failed_migration_leaves_nothing(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE outbox_sample (mine)")
    store = SqliteStore(path)
    with pytest.raises(StoreUnavailableError, match="outbox_sample"):
        await store.schema.apply()
    assert [name for _, name, _ in _schema(path)] == ["outbox_sample"]
    connection.execute("DROP TABLE outbox_sample")
    connection.close()
    assert len(await store.schema.apply()) == STEPS
    await store.aclose()


async def test_two_outboxes_can_share_one_file(store: SqliteStore, path: Path) -> None:
    other = SqliteStore(path, tables=TableNames(prefix="shop_outbox_"))
    assert len(await other.schema.apply(aliases=True)) == STEPS
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("INSERT INTO shop_outbox_message (event_type, payload) VALUES ('t', '')")
    assert len(await (await Owner.of(other)).ready()) == 1
    assert await (await Owner.of(store)).ready() == []
    assert connection.execute("SELECT count(*) FROM shop_outbox_events").fetchone() == (1,)
    assert connection.execute("SELECT count(*) FROM shop_event_outbox").fetchone() == (1,)
    connection.close()
    await other.aclose()


@pytest.mark.parametrize("prefix", ["", "out box", 'x"; DROP TABLE y; --', "1st", "x" * 40])
def test_an_invalid_prefix_is_rejected(path: Path, prefix: str) -> None:
    with pytest.raises(ConfigurationError, match="prefix"):
        SqliteStore(path, tables=TableNames(prefix=prefix))
