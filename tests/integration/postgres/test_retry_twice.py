"""Two operators retry the same dead letter concurrently: it is sent once."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from pillarbox.core.outcome import Dead, Decision
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.lookup import dead_letters
from pillarbox.testing.waiting import eventually
from tests.databases import Sql
from tests.integration.postgres.test_fencing_race import one_in_flight, waits_for_a_lock


@pytest.fixture
async def operator(postgres_url: str) -> AsyncIterator[Sql]:
    connection = await asyncpg.connect(postgres_url, server_settings={"application_name": "pillarbox"})
    yield connection
    await connection.close()


@pytest.mark.parametrize("in_sql", [False, True])
async def test_a_concurrently_retried_dead_letter_is_skipped(
    store: PostgresStore, sql: Sql, other_session: Sql, operator: Sql, in_sql: bool
) -> None:
    message, epochs = await one_in_flight(store, sql)
    await store.writes.settle(epochs, [Decision(message, Dead(error="no"), "orders")])
    [dead_letter] = await dead_letters(store)
    # Like the retry of another operator, whose message a relay delivers before this one continues.
    other = other_session.transaction()
    await other.start()
    await other_session.execute("DELETE FROM outbox_dead_letter")
    retry = asyncio.create_task(
        operator.fetchval("SELECT outbox_retry($1)", message.event_id)
        if in_sql
        else store.admin.dead_letters.retry([dead_letter.id])
    )
    await eventually(lambda: waits_for_a_lock(sql))
    await other.commit()
    assert await retry == 0
    assert await sql.fetchval("SELECT count(*) FROM outbox_message") == 0
