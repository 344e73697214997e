"""Checks of a SQLite file; they change nothing."""

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from pillarbox.admin.diagnosis import CheckResult
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.stores.sqlite.diagnosis import LONG_LOG, MUCH_ROOM
from tests.integration.doctor.asking import ask

MIB = 1 << 20


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with aclosing(SqliteStore(tmp_path / "shop.db")) as store:
        await store.schema.apply()
        yield store


async def asked(store: SqliteStore, check: str) -> CheckResult:
    return await ask(store.diagnosis.checks(), check)


async def test_a_missing_file_is_not_created(tmp_path: Path) -> None:
    async with aclosing(SqliteStore(tmp_path / "shop.db")) as store:
        assert (await asked(store, "store.reachable")).result == "fail"
    assert os.listdir(tmp_path) == []


async def test_a_file_that_is_not_a_database_fails(tmp_path: Path) -> None:
    (tmp_path / "shop.db").write_text("dear diary " * 1000)
    async with aclosing(SqliteStore(tmp_path / "shop.db")) as store:
        found = await asked(store, "store.reachable")
    assert (found.result, "not a database" in found.message) == ("fail", True)


async def test_another_journal_mode_is_reported_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    async with aclosing(SqliteStore(path)) as store:
        with closing(sqlite3.connect(path)) as file:
            file.executescript(store.schema.sql())
        assert (await asked(store, "store.reachable")).result == "pass"
        found = await asked(store, "store.journal")
        assert (found.result, "'delete'" in found.message) == ("fail", True)
        with closing(sqlite3.connect(path)) as file:
            assert file.execute("PRAGMA journal_mode").fetchone() == ("delete",)
            file.execute("PRAGMA journal_mode = WAL")
        assert (await asked(store, "store.journal")).result == "pass"


async def test_a_dropped_index_fails_with_its_name(store: SqliteStore, tmp_path: Path) -> None:
    assert (await asked(store, "store.tables")).result == "pass"
    with closing(sqlite3.connect(tmp_path / "shop.db")) as file, file:
        file.execute("DROP INDEX outbox_message_recorded_idx")
    found = await asked(store, "store.tables")
    assert (found.result, "outbox_message_recorded_idx is missing" in found.message) == ("fail", True)


async def test_a_file_with_mostly_free_pages_is_a_warning(store: SqliteStore, tmp_path: Path) -> None:
    assert (await asked(store, "store.bloat")).result == "pass"
    with closing(sqlite3.connect(tmp_path / "shop.db")) as file:
        file.executescript(
            f"CREATE TABLE big (x); INSERT INTO big VALUES (zeroblob({MUCH_ROOM + MIB})); DROP TABLE big"
        )
        assert (await asked(store, "store.bloat")).result == "warn"
        file.execute("VACUUM")
    assert (await asked(store, "store.bloat")).result == "pass"


async def test_a_reader_that_prevents_a_checkpoint_is_a_warning(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    assert (await asked(store, "store.horizon")).result == "pass"
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM outbox_lane").fetchone()
        with closing(sqlite3.connect(path)) as file:
            file.executescript(f"CREATE TABLE big (x); INSERT INTO big VALUES (zeroblob({LONG_LOG + MIB}))")
            assert (await asked(store, "store.horizon")).result == "warn"
        reader.execute("COMMIT")
        assert reader.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    assert (await asked(store, "store.horizon")).result == "pass"


async def test_a_writer_that_holds_the_lock_fails(tmp_path: Path) -> None:
    async with aclosing(SqliteStore(tmp_path / "shop.db", busy_timeout="10ms")) as store:
        await store.schema.apply()
        assert (await asked(store, "store.lock")).result == "pass"
        with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as file:
            file.execute("BEGIN IMMEDIATE")
            found = await asked(store, "store.lock")
            assert (found.result, "locked by another writer" in found.message) == ("fail", True)
            file.execute("ROLLBACK")
        assert (await asked(store, "store.lock")).result == "pass"
