"""An operator retries a dead letter by store, function or compatibility view, with the same result."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from pillarbox.core.outcome import Dead
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.lookup import dead_letters
from tests.databases import Sql

Retry = Callable[[PostgresStore, Sql], Awaitable[Any]]


async def by_store(store: PostgresStore, sql: Sql) -> None:
    [dead_letter] = await dead_letters(store)
    assert await store.admin.dead_letters.retry([dead_letter.id], by="postgres") == 1


async def by_function(store: PostgresStore, sql: Sql) -> None:
    assert await sql.fetchval("SELECT outbox_retry('e')") == 1


async def by_view(store: PostgresStore, sql: Sql) -> None:
    await sql.execute("UPDATE event_outbox SET status = 'PENDING' WHERE id = 'e'")


@pytest.fixture
async def strict(postgres_url: str, sql: Sql) -> AsyncIterator[PostgresStore]:
    """A store with a dead letter above its payload limit, and a ledger entry of the event."""
    await sql.execute(
        "INSERT INTO outbox_message (event_id, event_type, payload, ordering_key, destination)"
        " VALUES ('e', 't', convert_to(repeat('1', 3000), 'UTF8'), 'k', 'x')"
    )
    store = PostgresStore(postgres_url, max_payload=100, ledger=True)
    await store.schema.apply()
    owner = await Owner.of(store)
    await owner.settle(Dead(error="no"), *await owner.ready())
    await sql.execute("UPDATE outbox_ledger SET status = 'SUCCESS', send_number = 7")
    yield store
    await store.aclose()


@pytest.mark.parametrize("retry", [by_store, by_function, by_view])
async def test_a_dead_letter_is_retried_despite_limit_ledger_and_history(
    strict: PostgresStore, sql: Sql, retry: Retry
) -> None:
    await retry(strict, sql)
    assert await dead_letters(strict) == []
    row = await sql.fetchrow(
        "SELECT attempts, deferrals, held, available_at, octet_length(payload) FROM outbox_message"
    )
    assert row is not None
    # The attempt distinguishes a retry from a duplicate of an event in the history.
    assert tuple(row) == (0, 1, None, None, 3000)
    assert tuple(*await sql.fetch("SELECT status, send_number FROM outbox_ledger")) == ("PROCESSING", None)
    [entry] = (await strict.admin.audit.list()).entries
    assert (entry.who, entry.what, entry.subject, entry.count) == ("postgres", "retry", "e", 1)
    assert (set(entry.detail), entry.detail["destination"]) == ({"destination", "dead_letter_id"}, "x")


async def test_the_limit_applies_again_after_the_function(strict: PostgresStore, sql: Sql) -> None:
    async with sql.transaction():
        await by_function(strict, sql)
        with pytest.raises(asyncpg.CheckViolationError, match="max_payload"):
            async with sql.transaction():
                await sql.execute(
                    "INSERT INTO outbox_message (event_type, payload) VALUES ('t', repeat('x', 101)::bytea)"
                )
    assert await sql.fetchval("SELECT count(*) FROM outbox_message") == 1


async def test_the_relay_role_may_retry_in_sql(
    strict: PostgresStore, postgres_url: str, roles: dict[str, str], sql: Sql
) -> None:
    operator = await asyncpg.connect(postgres_url, user=roles["relay"])
    assert await operator.fetchval("SELECT outbox_retry('e')") == 1
    await operator.close()
    [entry] = (await strict.admin.audit.list()).entries
    assert entry.who == roles["relay"]
