"""Destinations in the tables: overrides are audited, reports of relays are not."""

import json
import sqlite3
from pathlib import Path

from pillarbox import TableNames
from pillarbox.core.store import EVERYWHERE
from pillarbox.stores.sqlite import SqliteStore


async def test_overrides_are_audited(store: SqliteStore, sql: sqlite3.Connection) -> None:
    await store.admin.requests.override("orders", paused=True, rate_limit=5, by="ann")
    await store.admin.requests.override(EVERYWHERE, breaker=None, by="bob")
    await store.admin.requests.override("unknown", by="carl")
    rows = sql.execute("SELECT who, what, subject, detail FROM outbox_audit ORDER BY audit_id").fetchall()
    assert [(*facts, json.loads(detail)) for *facts, detail in rows] == [
        ("ann", "override", "orders", {"paused": True, "rate_limit": 5}),
        ("bob", "override", EVERYWHERE, {"breaker": None}),
    ]


async def test_a_report_of_a_relay_is_not_audited(store: SqliteStore, sql: sqlite3.Connection) -> None:
    await store.admin.requests.override("orders", paused=True, by="ann")
    changed = "SELECT changed_at, changed_by FROM outbox_destination"
    before = sql.execute(changed).fetchall()
    await store.destinations.report("orders", error="down", next_attempt=5)
    assert sql.execute(changed).fetchall() == before
    assert sql.execute("SELECT count(*) FROM outbox_audit").fetchone() == (1,)


async def test_a_sibling_store_has_the_same_file_and_prefix(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "shop.db", tables=TableNames(prefix="shop_"), max_payload=2048)
    await store.schema.apply()
    await store.aclose()
    other = store.clone()
    await other.schema.check()
    await other.admin.requests.override("orders", paused=True)
    await other.aclose()
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        assert connection.execute("SELECT destination FROM shop_destination").fetchall() == [("orders",)]
    connection.close()
