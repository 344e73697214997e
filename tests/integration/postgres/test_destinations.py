"""Destinations in the tables: overrides are audited, and an unchanged report writes nothing."""

import json

from pillarbox import TableNames
from pillarbox.core.store import EVERYWHERE
from pillarbox.stores.postgres import PostgresStore
from tests.databases import Sql


async def test_overrides_are_audited(store: PostgresStore, sql: Sql) -> None:
    await store.admin.requests.override("orders", paused=True, rate_limit=5, by="ann")
    await store.admin.requests.override(EVERYWHERE, breaker=None, by="bob")
    rows = await sql.fetch("SELECT who, what, subject, detail FROM outbox_audit ORDER BY audit_id")
    assert [(row["who"], row["what"], row["subject"], json.loads(row["detail"])) for row in rows] == [
        ("ann", "override", "orders", {"paused": True, "rate_limit": 5}),
        ("bob", "override", EVERYWHERE, {"breaker": None}),
    ]
    assert await sql.fetchval("SELECT changed_by FROM outbox_destination WHERE destination = 'orders'") == "ann"


async def test_without_a_name_the_session_user_is_audited(store: PostgresStore, sql: Sql) -> None:
    await store.admin.requests.override("orders", paused=True)
    assert await sql.fetchval("SELECT who FROM outbox_audit") == await sql.fetchval("SELECT current_user")


async def test_an_unchanged_override_is_not_audited(store: PostgresStore, sql: Sql) -> None:
    await store.admin.requests.override("orders", by="ann")
    assert await sql.fetchval("SELECT count(*) FROM outbox_audit") == 0


async def test_a_report_of_a_relay_is_not_audited(store: PostgresStore, sql: Sql) -> None:
    await store.admin.requests.override("orders", paused=True, by="ann")
    changed = "SELECT changed_at, changed_by FROM outbox_destination"
    before = await sql.fetchrow(changed)
    await store.destinations.report("orders", error="down", next_attempt=5)
    assert await sql.fetchrow(changed) == before
    assert await sql.fetchval("SELECT count(*) FROM outbox_audit") == 1


async def test_an_unchanged_report_writes_nothing(store: PostgresStore, sql: Sql) -> None:
    await store.destinations.report("orders", error="down", next_attempt=None)
    version = "SELECT xmin::text FROM outbox_destination"
    before = await sql.fetchval(version)
    await store.destinations.report("orders", error="down", next_attempt=None)
    assert await sql.fetchval(version) == before


async def test_a_sibling_store_has_the_same_schema_and_prefix(postgres_url: str, sql: Sql) -> None:
    store = PostgresStore(postgres_url, tables=TableNames(schema="elsewhere", prefix="shop_"), max_payload=2048)
    await store.schema.apply()
    await store.aclose()
    other = store.clone()
    await other.schema.check()
    await other.admin.requests.override("orders", paused=True)
    await other.aclose()
    assert await sql.fetchval('SELECT destination FROM elsewhere."shop_destination"') == "orders"
