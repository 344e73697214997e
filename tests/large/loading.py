"""Tables as they are after a busy day: spread over the hours, types, keys and destinations."""

import asyncio
from contextlib import aclosing

import psycopg

from pillarbox.stores.postgres import PostgresStore
from tests.servers.postgres import PostgresServer

_MOMENT = "now() - ({rows} - g) * ({span}) / {rows}"
_TODAY = "now() - date_trunc('day', now(), 'UTC')"
_COMMON = "'order.' || (ARRAY['placed', 'paid', 'shipped', 'returned'])[1 + g % 4], 'ORDER:' || g % 200000"

HISTORY = """
INSERT INTO outbox_history (id, event_id, destination, event_type, key, payload, content_type, headers,
  schema_version, occurred_at, recorded_at, attempts, deferrals, published_at)
SELECT g, 'h' || g, 'd' || g % 5, {common}, convert_to(repeat('x', 200), 'UTF8'), 'application/json', '{{}}', 1,
  {moment}, {moment}, 0, 0, {moment} + interval '80 ms'
FROM generate_series(1, {rows}) g
"""
PENDING = """
INSERT INTO outbox_message (event_id, destination, event_type, ordering_key, payload, recorded_at)
SELECT 'm' || g, 'd' || g % 5, {common}, convert_to(repeat('x', 200), 'UTF8'), {moment}
FROM generate_series(1, {rows}) g
"""
DEAD = """
INSERT INTO outbox_dead_letter (id, event_id, destination, event_type, key, payload, content_type, headers,
  schema_version, occurred_at, recorded_at, attempts, deferrals, error, dead_lettered_at)
SELECT g, 'x' || g, 'd' || g % 5, {common}, convert_to(repeat('x', 200), 'UTF8'), 'application/json', '{{}}', 1,
  {moment}, {moment}, 11, 0, 'refused ' || g || ': ' || (ARRAY['no such account', 'timeout', 'too large'])[1 + g % 3],
  {moment}
FROM generate_series(1, {rows}) g
"""


def load(server: PostgresServer, *, history: int, pending: int, dead: int) -> str:
    """The URL of a database so full."""
    server.create_database("large")
    url = server.url("large")
    asyncio.run(_make_tables(url))
    with psycopg.connect(url, autocommit=True) as database:
        for sql, rows, span in (
            (HISTORY, history, _TODAY),
            (PENDING, pending, _TODAY),
            (DEAD, dead, "interval '30 days'"),
        ):
            moment = _MOMENT.format(rows=rows, span=span)
            database.execute(sql.format(rows=rows, common=_COMMON, moment=moment).encode())
        database.execute("VACUUM ANALYZE")
    return url


async def _make_tables(url: str) -> None:
    async with aclosing(PostgresStore(url)) as store:
        await store.schema.apply()
        await store.schema.prepare()
