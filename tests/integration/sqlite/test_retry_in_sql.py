"""An operator retries a dead letter by store or compatibility view, with the same result."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from pillarbox.core.outcome import Dead
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.lookup import dead_letters

Retry = Callable[[SqliteStore, sqlite3.Connection], Awaitable[None]]


async def by_store(store: SqliteStore, sql: sqlite3.Connection) -> None:
    [dead_letter] = await dead_letters(store)
    assert await store.admin.dead_letters.retry([dead_letter.id]) == 1


async def by_view(store: SqliteStore, sql: sqlite3.Connection) -> None:
    sql.execute("UPDATE event_outbox SET status = 'PENDING' WHERE id = 'e'")


@pytest.fixture
async def strict(path: Path, sql: sqlite3.Connection) -> AsyncIterator[SqliteStore]:
    """A store with a dead letter above its payload limit, and a ledger entry of the event."""
    sql.execute(
        "INSERT INTO outbox_message (event_id, event_type, payload, ordering_key, destination)"
        " VALUES ('e', 't', zeroblob(3000), 'k', 'x')"
    )
    store = SqliteStore(path, max_payload=100, ledger=True)
    await store.schema.apply(aliases=True)
    owner = await Owner.of(store)
    await owner.settle(Dead(error="no"), *await owner.ready())
    sql.execute("UPDATE outbox_ledger SET status = 'SUCCESS', send_number = 7")
    yield store
    await store.aclose()


@pytest.mark.parametrize("retry", [by_store, by_view])
async def test_a_dead_letter_is_retried_despite_limit_ledger_and_history(
    strict: SqliteStore, sql: sqlite3.Connection, retry: Retry
) -> None:
    await retry(strict, sql)
    assert await dead_letters(strict) == []
    row = sql.execute(
        "SELECT attempts, deferrals, held, available_at, shared_id, length(payload) FROM outbox_message"
    ).fetchone()
    # The attempt distinguishes a retry from a duplicate of an event in the history.
    assert row == (0, 1, None, None, None, 3000)
    assert sql.execute("SELECT status, send_number FROM outbox_ledger").fetchall() == [("PROCESSING", None)]
    [entry] = (await strict.admin.audit.list()).entries
    assert (entry.what, entry.subject, entry.count) == ("retry", "e", 1)
    assert (set(entry.detail), entry.detail["destination"]) == ({"destination", "dead_letter_id"}, "x")
