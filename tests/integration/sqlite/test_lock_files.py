"""Lock files are named after relay ids: no id leads outside the folder or raises."""

import sqlite3
from pathlib import Path

import pytest

from pillarbox.core.lane import RelayRegistration
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import LONG, Owner, join

IDS = (
    "0192d3c4-5b6a-7c8d-9e0f-a1b2c3d4e5f6",
    "a/b",
    "/../../outside",
    "../outside",
    "..",
    "",
    "nul\0byte",
    "line\nfeed",
    "x" * 300,
    "é" * 100,
    "<script>xss()</script>",
    "Capital",
)


@pytest.mark.parametrize("id", IDS)
async def test_any_relay_id_has_its_own_lock_file(store: SqliteStore, path: Path, id: str) -> None:
    heartbeat, watcher = SqliteStore(path), await join(store)
    await store.lanes.join(RelayRegistration(id=id), lease=LONG)
    before = set(path.parent.parent.rglob("*"))
    assert await heartbeat.lanes.renew(id, lease=LONG) is not None
    [made] = set(path.parent.parent.rglob("*")) - before
    assert made.parent == path.parent
    assert made.name.startswith(f"{path.name}-relay-")
    assert await store.lanes.ended(watcher) == []
    await heartbeat.aclose()
    sessions = await store.lanes.ended(watcher)
    assert [session.relay for session in sessions] == [id]
    assert await store.lanes.expire(sessions) == 1


@pytest.mark.parametrize("id", [*IDS, b"\xff/..\x00"])
async def test_a_forged_relay_row_affects_no_file_and_no_lane(
    store: SqliteStore, path: Path, sql: sqlite3.Connection, id: str | bytes
) -> None:
    outside = path.parent.parent / "outside"
    outside.touch()
    # With this folder there, "shop.db-relay-/../../outside" would lead out of the database's folder.
    path.with_name(f"{path.name}-relay-").mkdir()
    sql.execute(
        "INSERT INTO outbox_relay (id, lease_until, session) VALUES (?, '2000-01-01T00:00:00.000Z', 'lock')", (id,)
    )
    sql.execute("UPDATE outbox_lane SET owner = ?", (id,))
    owner = await Owner.of(store)
    assert len(owner.owned) == 1
    assert outside.exists()


async def test_different_ids_never_share_a_lock(store: SqliteStore, path: Path) -> None:
    for id in IDS:
        await store.lanes.join(RelayRegistration(id=id), lease=LONG)
        await store.lanes.renew(id, lease=LONG)
    assert len({made.name.lower() for made in path.parent.glob(f"{path.name}-relay-*")}) == len(IDS)


async def test_a_removed_lock_file_is_created_again_by_the_next_renewal(store: SqliteStore, path: Path) -> None:
    heartbeat, watcher = SqliteStore(path), await Owner.of(store, limit=0)
    owner = await Owner.of(store)
    await heartbeat.lanes.renew(owner.relay, lease=LONG)
    [made] = path.parent.glob(f"{path.name}-relay-*")
    made.unlink()
    sessions = await store.lanes.ended(watcher.relay)
    assert [session.relay for session in sessions] == [owner.relay]
    await heartbeat.lanes.renew(owner.relay, lease=LONG)
    assert await store.lanes.ended(watcher.relay) == []
    assert await store.lanes.expire(sessions) == 0
    assert await watcher.acquire(1) == []
    await heartbeat.aclose()
    assert not made.exists()
