"""Four roles with exactly the privileges of their duty, on a real server."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest

from pillarbox.core.fetch import Bounds, Ready
from pillarbox.core.lane import RelayRegistration, epochs_of
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Retry
from pillarbox.core.store import Retention
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.lookup import dead_letters
from tests.integration.postgres.logins import logged_in
from tests.integration.postgres.migrations import NEXT, next_release

INSERT = "INSERT INTO outbox_message (event_type, payload) VALUES ('a', '{}')"

# What each role may do; everything else is denied.
MATRIX: dict[str, tuple[str, set[str]]] = {
    "record": (INSERT, {"producer", "relay", "migrator"}),
    "look at relays": ("SELECT id FROM outbox_relay", {"relay", "reader", "migrator"}),
    "read payloads": ("SELECT payload FROM outbox_message", {"relay", "reader", "migrator"}),
    "see events": ("SELECT status FROM outbox_event", {"relay", "reader", "migrator"}),
    "change a message": ("UPDATE outbox_message SET attempts = 1", {"relay", "migrator"}),
    "delete a message": ("DELETE FROM outbox_message", {"relay", "migrator"}),
    "take a lane": ("UPDATE outbox_lane SET owner = 'x'", {"relay", "migrator"}),
    "pause a destination": (
        "INSERT INTO outbox_destination (destination, paused) VALUES ('x', true)",
        {"relay", "migrator"},
    ),
    "write how far a replay is": ("UPDATE outbox_audit SET count = 1, detail = '{}'", {"relay", "migrator"}),
    "rewrite the audit": ("UPDATE outbox_audit SET who = 'x'", {"migrator"}),
    "drop history": ("SELECT outbox_history_drop('7 days')", {"relay", "migrator"}),
    "admit": (
        "INSERT INTO outbox_inbox (consumer, event_id) VALUES ('c', 'e') ON CONFLICT DO NOTHING",
        {"producer", "relay", "migrator"},
    ),
    "write statistics": (
        "INSERT INTO outbox_inbox_statistics (consumer, processed) VALUES ('c', 1) "
        "ON CONFLICT (consumer, hour) DO UPDATE SET processed = excluded.processed",
        {"producer", "relay", "migrator"},
    ),
    "delete statistics": ("DELETE FROM outbox_inbox_statistics", {"relay", "migrator"}),
    "insert through event_outbox": (
        "INSERT INTO event_outbox (event_type, aggregate_id, payload, metadata) VALUES ('a', 5, '{}', '{}')",
        {"producer", "relay", "migrator"},
    ),
    "insert through outbox_events": (
        "INSERT INTO outbox_events (event_type, payload, status) VALUES ('a', '{}', 'PENDING')",
        {"producer", "relay", "migrator"},
    ),
    "insert through outbox_integration_event": (
        "INSERT INTO outbox_integration_event (event_type, payload_json) VALUES ('a', '{}')",
        {"producer", "relay", "migrator"},
    ),
    "see events under other names": ("SELECT status FROM event_outbox", {"relay", "reader", "migrator"}),
    "see dead letters under another name": ("SELECT * FROM event_outbox_dlq", {"relay", "reader", "migrator"}),
    "see the archive": ("SELECT * FROM event_outbox_archive", {"relay", "reader", "migrator"}),
    "read back what was inserted": (
        "INSERT INTO event_outbox (event_type, payload) VALUES ('a', '{}') RETURNING event_id",
        {"relay", "migrator"},
    ),
    "retry through a view": ("UPDATE event_outbox SET status = 'PENDING'", {"relay", "migrator"}),
    "delete through a view": ("DELETE FROM outbox_events", {"relay", "migrator"}),
    "move to the dead letters": (
        "INSERT INTO event_outbox_dlq SELECT * FROM event_outbox",
        {"relay", "migrator"},
    ),
    "archive": ("INSERT INTO event_outbox_archive SELECT * FROM event_outbox", {"relay", "migrator"}),
    "change a table": ("ALTER TABLE outbox_message ADD COLUMN extra text", {"migrator"}),
}


async def allowed(attempt: Callable[[], Awaitable[object]]) -> bool:
    try:
        await attempt()
    except asyncpg.InsufficientPrivilegeError:
        return False
    return True


@pytest.mark.parametrize("deed", MATRIX)
async def test_each_role_can_do_what_its_duty_needs_and_no_more(
    deed: str, postgres_url: str, roles: dict[str, str]
) -> None:
    statement, expected = MATRIX[deed]
    able = set()
    for duty, role in roles.items():
        async with logged_in(postgres_url, role) as connection:
            undone = connection.transaction()
            await undone.start()
            if await allowed(lambda: connection.execute(statement)):
                able.add(duty)
            await undone.rollback()
    assert able == expected


async def test_the_relay_role_can_run_every_store_operation(postgres_url: str, roles: dict[str, str]) -> None:
    url = postgres_url.replace("postgres@", f"{roles['relay']}@")
    async with aclosing(PostgresStore(url)) as store:
        async with logged_in(postgres_url, roles["producer"]) as producer:
            for _ in range(3):
                await producer.execute(INSERT)
        await store.schema.check()
        await store.lanes.join(RelayRegistration(id="a"), lease=60)
        epochs = epochs_of(await store.lanes.acquire("a", limit=64))
        delivered, retried, dead = await store.messages.fetch(Ready(lanes=list(epochs)))
        settled = await store.writes.settle(
            epochs,
            [
                Decision(delivered, DELIVERED, "x"),
                Decision(retried, Retry(delay=60, error="no"), "x"),
                Decision(dead, Dead(error="no"), "x"),
            ],
        )
        assert settled.count == 3
        [dead_letter] = await dead_letters(store)
        assert await store.admin.dead_letters.retry([dead_letter.id]) == 1
        await store.admin.requests.add("retry", [(retried.event_id, "x")])
        assert (await store.writes.execute_requests(epochs)).done == 1
        assert await store.lanes.renew("a", lease=60, breakers={"x": "open"}) is not None
        await store.destinations.report("x", error="no", next_attempt=5)
        await store.admin.requests.override("x", paused=True, rate_limit=1)
        assert [row.destination for row in await store.destinations.overrides()] == ["x"]
        since = datetime.now(UTC) - timedelta(hours=1)
        assert await store.messages.fetch(Ready(lanes=list(epochs), bounds=Bounds(recorded_after=since))) != []
        await store.schema.prepare()
        await store.pruning.prune(Retention(history=0, dead=0, inbox=0, ledger=0, audit=0))
        await store.wakeup.request("a", 1)
        await store.lanes.release("a")


async def test_the_migrator_role_applies_the_schema(postgres_url: str, roles: dict[str, str], tmp_path: Path) -> None:
    url = postgres_url.replace("postgres@", f"{roles['migrator']}@")
    async with next_release(url, tmp_path, max_payload=2048) as schema:
        assert await schema.apply(aliases=True) == [NEXT]
        await schema.check()
