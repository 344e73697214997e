"""The wake-up: a relay never sleeps through a commit after its last fetch."""

import sqlite3

from pillarbox.core.outcome import Dead
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.lookup import dead_letters

INSERT = "INSERT INTO outbox_message (event_type, payload) VALUES ('t', '')"
LONG_NAP = 60.0


async def test_a_commit_between_fetch_and_sleep_wakes_the_relay(
    store: SqliteStore, owner: Owner, sql: sqlite3.Connection
) -> None:
    assert await owner.ready() == []
    sql.execute(INSERT)
    assert await store.wakeup.wait(LONG_NAP) is True


async def test_other_reads_do_not_consume_a_wakeup(store: SqliteStore, owner: Owner, sql: sqlite3.Connection) -> None:
    assert await owner.ready() == []
    sql.execute(INSERT)
    assert await owner.due() == []
    assert await store.wakeup.wait(LONG_NAP) is True


async def test_a_fetched_commit_does_not_wake_again(store: SqliteStore, owner: Owner, sql: sqlite3.Connection) -> None:
    sql.execute(INSERT)
    assert len(await owner.ready()) == 1
    assert await store.wakeup.wait(0) is False


async def test_settlements_of_the_same_store_do_not_wake(
    store: SqliteStore, owner: Owner, sql: sqlite3.Connection
) -> None:
    sql.execute(INSERT)
    await owner.settle(Dead(error="no"), *await owner.ready())
    assert await store.wakeup.wait(0) is False


async def test_operator_requests_through_the_same_store_wake_the_relay(
    store: SqliteStore, owner: Owner, sql: sqlite3.Connection
) -> None:
    sql.execute(INSERT)
    await owner.settle(Dead(error="no"), *await owner.ready())
    [dead_letter] = await dead_letters(store)
    await store.admin.dead_letters.retry([dead_letter.id])
    assert await store.wakeup.wait(LONG_NAP) is True
    await store.admin.requests.add("retry", [(dead_letter.event_id, "")])
    assert await store.wakeup.wait(LONG_NAP) is True


async def test_a_rolled_back_event_does_not_wake(store: SqliteStore, owner: Owner, sql: sqlite3.Connection) -> None:
    assert await owner.ready() == []
    sql.execute("BEGIN IMMEDIATE")
    sql.execute(INSERT)
    sql.execute("ROLLBACK")
    assert await store.wakeup.wait(0) is False


async def test_heartbeats_do_not_wake(store: SqliteStore, owner: Owner) -> None:
    assert await owner.ready() == []
    heart = store.clone()
    await heart.lanes.renew(owner.relay, lease=LONG_NAP)
    await heart.destinations.report("orders", error="down", next_attempt=1)
    await heart.aclose()
    assert await store.wakeup.wait(0) is False


async def test_sleeping_is_announced_to_producers_until_the_wakeup(
    store: SqliteStore, owner: Owner, sql: sqlite3.Connection
) -> None:
    asleep = "SELECT asleep_until > strftime('%Y-%m-%dT%H:%M:%fZ', 'now') FROM outbox_relay"
    await store.wakeup.request(owner.relay, LONG_NAP)
    assert sql.execute(asleep).fetchall() == [(1,)]
    await store.wakeup.request(owner.relay, 0)
    assert sql.execute(asleep).fetchall() == [(None,)]
