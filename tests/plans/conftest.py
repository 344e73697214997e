"""A database with a full history, many delayed events, and many messages that wait for one key."""

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest

from tests.databases import cloned
from tests.plans.explain import Explainer
from tests.servers.postgres import PostgresServer

MILLION = 1_000_000
BEHIND = 100_000
HOT_KEYS = 50
PER_HOT_KEY = 1_000

_LOAD = f"""
INSERT INTO outbox_history (id, event_id, destination, event_type, payload, content_type, headers,
  schema_version, occurred_at, recorded_at, attempts, deferrals, published_at)
SELECT g, 'h' || g, 'orders', 'order.placed', 'x', 'application/json', '{{}}', 1, now(), now(), 0, 0, now()
FROM generate_series(1, {MILLION}) g;

INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key, available_at)
SELECT 'd' || g, 'orders', 'order.placed', 'x', 'delayed ' || g % 10000, now() + interval '1 day' + g * interval '1 ms'
FROM generate_series(1, {MILLION}) g;

-- One key whose first event waits for a retry, and all its later events.
INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key, available_at, attempts)
VALUES ('head', 'orders', 'order.placed', 'x', 'stuck', now() + interval '1 hour', 1);
INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key, held)
SELECT 'b' || g, 'orders', 'order.placed', 'x', 'stuck', 'waiting' FROM generate_series(1, {BEHIND}) g;

-- Another key with as many waiting events whose first event is gone: a relay fetches its next ones.
INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key, held)
SELECT 'f' || g, 'orders', 'order.placed', 'x', 'flowing', 'waiting' FROM generate_series(1, {BEHIND}) g;

INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key, held)
SELECT 'a' || g, 'closed', 'order.placed', 'x', 'aside ' || g, 'parked' FROM generate_series(1, {BEHIND}) g;

INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key, available_at, attempts)
SELECT 'r' || g, 'orders', 'order.placed', 'x', 'retry ' || g, now() - interval '1 minute', 1
FROM generate_series(1, 20000) g;

INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key)
SELECT 'k' || g, 'orders', 'order.placed', convert_to(repeat('x', 320), 'UTF8'), 'hot ' || g % {HOT_KEYS}
FROM generate_series(1, {HOT_KEYS * PER_HOT_KEY}) g;

INSERT INTO outbox_dead_letter (id, event_id, destination, event_type, key, payload, content_type, headers,
  schema_version, occurred_at, recorded_at, attempts, deferrals, error)
SELECT g, 'x' || g, 'orders', 'order.placed', 'dead ' || g % 1000, 'x', 'application/json', '{{}}', 1, now(), now(), 3,
  0, 'no'
FROM generate_series(1, {BEHIND}) g;

-- The stuck and the flowing key go on receiving.
INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key)
SELECT 's' || g, 'orders', 'order.placed', 'x', CASE g % 2 WHEN 0 THEN 'stuck' ELSE 'flowing' END
FROM generate_series(1, 1000) g;
"""


_INDEXES = """
SELECT indexrelid::regclass::text AS name, replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ') AS definition
FROM pg_index
WHERE indrelid = ANY ('{outbox_history, outbox_message, outbox_dead_letter}'::regclass[])
  AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
"""
"""Those that no constraint needs. Of a partitioned table, with all partitions."""


async def _load(url: str) -> None:
    connection = await asyncpg.connect(url)
    # An index built over all rows at once costs less CPU than one that grows row by row.
    indexes = await connection.fetch(_INDEXES)
    for index in indexes:
        await connection.execute(f"DROP INDEX {index['name']}")
    await connection.execute(_LOAD)
    for index in indexes:
        await connection.execute(index["definition"])
    await connection.execute("VACUUM ANALYZE")
    await connection.close()


@pytest.fixture(scope="package")
def bad_day(postgres_server: PostgresServer, postgres_template: str) -> Iterator[str]:
    """The URL of that database. A test that writes to it must undo its changes."""
    with cloned(postgres_server, postgres_template) as url:
        asyncio.run(_load(url))
        yield url


@pytest.fixture
async def explain(bad_day: str) -> Explainer:
    return Explainer(bad_day)
