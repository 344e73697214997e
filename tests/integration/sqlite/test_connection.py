"""The connection: its file, and behaviour when busy, closed, cancelled or used from another event loop."""

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest

from pillarbox.core.errors import ConfigurationError, SchemaError, StoreUnavailableError
from pillarbox.core.lane import RelayRegistration
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.stores.sqlite.store import path_of
from pillarbox.testing.conformance.lane_owner import Owner, join
from pillarbox.testing.lookup import dead_letters


def test_three_slashes_are_relative_and_four_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert path_of("sqlite:///shop.db") == tmp_path / "shop.db"
    assert path_of("sqlite:////var/lib/shop.db") == Path("/var/lib/shop.db")
    assert path_of("data/shop.db") == tmp_path / "data" / "shop.db"
    assert path_of(tmp_path / "a b?.db") == tmp_path / "a b?.db"


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite://host/shop.db", "sqlite:///", "sqlite:///:memory:", "mysql://db"]
)
def test_a_url_without_a_file_is_rejected(url: str) -> None:
    with pytest.raises(ConfigurationError):
        SqliteStore(url)


def test_options_in_the_url_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"has options \(\?mode=ro\)"):
        SqliteStore(f"sqlite:///{tmp_path / 'shop.db'}?mode=ro")


def test_an_old_sqlite_is_rejected(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(ConfigurationError, match=r"3\.35\.0 or newer"):
        SqliteStore(path)


def test_the_file_is_opened_on_first_use(path: Path) -> None:
    asyncio.run(SqliteStore(path).aclose())
    assert not path.exists()


async def test_a_file_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "no such folder" / "shop.db")
    with pytest.raises(
        StoreUnavailableError,
        match=r"no such folder.*check that its folder exists, .* permission to write in it, .* limit on open files",
    ):
        await store.schema.apply()
    await store.aclose()


async def test_reading_creates_no_file(path: Path) -> None:
    store, before = SqliteStore(path), os.listdir(path.parent)
    for read in (store.schema.check, store.admin.inspection.overview, store.admin.audit.list):
        with pytest.raises(SchemaError, match=r"there is no file .*schema apply"):
            await read()
    assert (await store.schema.status()).version == 0
    assert os.listdir(path.parent) == before
    await store.schema.apply()
    assert (await store.schema.status()).ok
    await store.aclose()


@pytest.fixture
def no_database(path: Path) -> Path:
    path.write_bytes(b"certainly not a database, " * 100)
    return path


async def test_a_file_that_is_not_a_database_is_unavailable(no_database: Path) -> None:
    store = SqliteStore(no_database)
    with pytest.raises(StoreUnavailableError, match=r"not a database; check that store.url names the right file"):
        await store.schema.status()
    await store.aclose()


async def test_a_long_writer_makes_the_store_unavailable(
    store: SqliteStore, sql: sqlite3.Connection, path: Path
) -> None:
    short_timeout = SqliteStore(path, busy_timeout="10ms")
    sql.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError, match=r"locked by another writer.* end its transaction"):
        await join(short_timeout)
    assert await dead_letters(short_timeout) == []
    sql.execute("COMMIT")
    await join(short_timeout)
    await short_timeout.aclose()


async def test_a_closed_store_is_an_error(store: SqliteStore) -> None:
    await store.aclose()
    with pytest.raises(StoreUnavailableError, match="is closed"):
        await dead_letters(store)


async def test_the_file_is_in_wal_mode(store: SqliteStore, sql: sqlite3.Connection) -> None:
    assert sql.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_a_cancelled_caller_leaves_no_transaction_open(store: SqliteStore, sql: sqlite3.Connection) -> None:
    sql.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(join(store))
    done, _ = await asyncio.wait([waiting], timeout=0.02)
    assert not done
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    sql.execute("COMMIT")
    assert await dead_letters(store) == []
    sql.execute("BEGIN IMMEDIATE")
    sql.execute("COMMIT")


async def test_the_heartbeat_can_run_in_another_event_loop(store: SqliteStore) -> None:
    owner = await Owner.of(store)

    def heart() -> int:
        async def beat() -> int:
            renewal = await store.lanes.renew(owner.relay, lease=60)
            assert renewal is not None
            return renewal.relays

        return asyncio.run(beat())

    assert await asyncio.to_thread(heart) == 1


async def test_work_that_raises_writes_nothing(store: SqliteStore, sql: sqlite3.Connection) -> None:
    class Broken(Exception):
        pass

    def work(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO outbox_audit (what) VALUES ('never')")
        raise Broken

    with pytest.raises(Broken):
        await store._connection.write(work)
    assert sql.execute("SELECT count(*) FROM outbox_audit").fetchone() == (0,)
    await store.lanes.join(RelayRegistration(id="still works"), lease=1)
