"""A page runs a bounded number of statements, independent of the size of the tables."""

import re
from typing import Any

import asyncpg
import psycopg
import pytest

from pillarbox.core.errors import StoreUnavailableError
from pillarbox.stores.postgres import PostgresStore
from tests.console.conftest import Visit
from tests.integration.cli.conftest import Stock

ROWS = 30_000
_LOAD = f"""
INSERT INTO outbox_history (id, event_id, destination, event_type, key, payload, content_type, headers,
  schema_version, occurred_at, recorded_at, attempts, deferrals, published_at)
SELECT g, 'h' || g, 'orders', 'order.placed', 'k' || g % 100, 'x', 'application/json', '{{}}', 1, now(), now(), 0, 0,
  now()
FROM generate_series(1, {ROWS}) g;
INSERT INTO outbox_dead_letter (id, event_id, destination, event_type, key, payload, content_type, headers,
  schema_version, occurred_at, recorded_at, attempts, deferrals, error)
SELECT g, 'x' || g, 'orders', 'order.placed', 'k' || g % 100, 'x', 'application/json', '{{}}', 1, now(), now(), 3, 0,
  'refused ' || g
FROM generate_series(1, {ROWS}) g;
INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key)
SELECT 'm' || g, 'orders', 'order.placed', 'x', 'k' || g % 100 FROM generate_series(1, {ROWS}) g;
ANALYZE;
"""
MOST = {
    "/": 6,
    "/events": 3,
    "/events?type=order.lost": 7,
    "/events?key=k1": 7,
    "/events?state=waiting": 12,
    "/event?id=m1": 7,
    "/dead": 11,
    "/dead?view=list&error=nothing": 6,
    "/destinations": 12,
    "/destination?name=orders": 15,
    "/keys": 12,
    "/keys/decide?action=retry": 20,
    "/relays": 6,
    "/store": 8,
    "/audit": 1,
    "/inbox": 1,
    "/events/decide?action=retry&type=order.placed": 20,
    "/replay?type=order.lost": 1,
    "/replay?type=order.placed": 1,
    "/replay?destination=nowhere": 20,
    "/api/v1/timeseries?window=24h": 1,
    "/api/v1/status": 6,
    "/api/v1/statistics": 6,
}


@pytest.fixture
def full(postgres_url: str) -> Stock:
    with psycopg.connect(postgres_url) as database:
        database.execute(_LOAD.encode())
    return Stock(postgres_url)


async def test_every_page_of_full_tables_has_a_bounded_number_of_statements(
    visit: Visit, full: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    fetch = asyncpg.Connection.fetch

    async def noting(connection: Any, query: str, *arguments: Any, **options: Any) -> Any:
        sent.append(query)
        return await fetch(connection, query, *arguments, **options)

    monkeypatch.setattr(asyncpg.Connection, "fetch", noting)
    found = {}
    for path in MOST:
        visitor = await visit(full)
        sent.clear()
        assert (await visitor.client.get(path)).status_code == 200
        found[path] = len(sent)
        assert [query for query in sent if re.search(r"\bOFFSET\b", query)] == []
    assert {path: count for path, count in found.items() if count > MOST[path]} == {}


async def test_a_statement_times_out(full: Stock) -> None:
    store = PostgresStore(full.url, statement_timeout="1ms")
    with pytest.raises(StoreUnavailableError, match="statement timeout"):
        await store.admin.keys.busiest()
    await store.aclose()
