"""The size of a backlog beyond the count limit."""

import asyncpg

from pillarbox.stores.postgres import PostgresStore

MANY = 15_000


async def load(url: str) -> None:
    """Load without ANALYZE; the server knows the inserts of a connection once it is closed."""
    sql = await asyncpg.connect(url)
    await sql.execute("ALTER TABLE outbox_message SET (autovacuum_enabled = false)")
    await sql.execute(
        "INSERT INTO outbox_message (event_type, payload) SELECT 'a', '{}' FROM generate_series(1, $1::int)", MANY
    )
    await sql.close()


async def test_a_large_backlog_is_estimated_without_an_analyze(store: PostgresStore, postgres_url: str) -> None:
    await load(postgres_url)
    seen = await store.admin.inspection.overview()
    assert (seen.backlog, seen.exact) == (MANY, False)


async def test_the_backlog_is_counted_up_to_the_requested_limit(store: PostgresStore, postgres_url: str) -> None:
    await load(postgres_url)
    seen = await store.admin.inspection.overview(counted=MANY)
    assert (seen.backlog, seen.exact) == (MANY, True)
