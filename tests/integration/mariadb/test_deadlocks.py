"""Deadlocks and lock timeouts: relays cannot cause one among themselves, and one with another session loses nothing."""

import asyncio

import pytest

from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.fetch import Bounds, Ready
from pillarbox.core.lane import Epochs
from pillarbox.core.message import Message
from pillarbox.core.outcome import DELIVERED, Decision
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.testing.waiting import eventually
from tests.integration.mariadb.session import Session
from tests.integration.mariadb.test_fencing_race import one_in_flight

LOCK_A_LANE = "SELECT lane FROM outbox_lane WHERE lane = %s FOR UPDATE"
COUNT = 200


async def many_in_flight(store: MariaDBStore, sql: Session) -> tuple[list[Message], Epochs]:
    """Messages in many lanes, all in flight in one relay."""
    _, epochs = await one_in_flight(store, sql)
    await sql.insert(COUNT - 1, first=2)
    messages = await store.messages.fetch(Ready(lanes=list(epochs), bounds=Bounds(limit=COUNT, quota=COUNT)))
    assert len(messages) == COUNT
    return messages, epochs


async def test_a_settlement_is_repeated_after_a_deadlock(
    store: MariaDBStore, sql: Session, other_session: Session
) -> None:
    messages, epochs = await many_in_flight(store, sql)
    decisions = [Decision(message, DELIVERED, "orders") for message in messages]
    first, *_, last = sorted({message.lane for message in messages})
    await other_session.execute("BEGIN")
    # Much to undo: the server ends the transaction that has written less.
    await other_session.execute("INSERT INTO outbox_audit (what) SELECT 'test' FROM seq_1_to_1000")
    # The last lane first: a settlement locks the lanes in order and stops before it.
    await other_session.execute(LOCK_A_LANE, last)
    settlement = asyncio.create_task(store.writes.settle(epochs, decisions))
    await eventually(sql.waits_for_a_lock)
    blocked = asyncio.create_task(other_session.execute(LOCK_A_LANE, first))
    with pytest.raises(StoreUnavailableError, match="Deadlock") as raised:
        await settlement
    assert raised.value.retryable
    await blocked
    await other_session.execute("ROLLBACK")
    assert await sql.value("SELECT count(*) FROM outbox_message") == COUNT
    assert (await store.writes.settle(epochs, decisions)).count == COUNT
    assert await sql.value("SELECT count(*) FROM outbox_history") == COUNT


async def test_a_lock_that_is_held_for_too_long_fails_the_whole_settlement(
    store: MariaDBStore, sql: Session, other_session: Session
) -> None:
    """MariaDB undoes only the statement that timed out: the store undoes the rest."""
    message, epochs = await one_in_flight(store, sql)
    await other_session.execute("BEGIN")
    await other_session.execute("SELECT id FROM outbox_message FOR UPDATE")
    async with store.writes._connection.open() as connection, connection.cursor() as cursor:
        await cursor.execute("SET innodb_lock_wait_timeout = 1")
    with pytest.raises(StoreUnavailableError, match="Lock wait timeout") as raised:
        await store.writes.settle(epochs, [Decision(message, DELIVERED, "orders")])
    assert raised.value.retryable
    assert await sql.value("SELECT count(*) FROM outbox_history") == 0
    await other_session.execute("ROLLBACK")
    assert (await store.writes.settle(epochs, [Decision(message, DELIVERED, "orders")])).count == 1
    assert await sql.value("SELECT count(*) FROM outbox_history") == 1


async def test_settlements_lock_lanes_in_one_order(store: MariaDBStore, sql: Session) -> None:
    """Lanes are locked in ascending order, so settlements cannot wait for each other in a cycle."""
    messages, epochs = await many_in_flight(store, sql)
    backwards = {lane: epochs[lane] for lane in sorted(epochs, reverse=True)}
    beside = [store.clone() for _ in range(4)]
    settled = await asyncio.gather(
        *(
            one.writes.settle(backwards if n % 2 else epochs, [Decision(m, DELIVERED, "") for m in messages[n::4]])
            for n, one in enumerate(beside)
        )
    )
    for one in beside:
        await one.aclose()
    assert sum(one.count for one in settled) == COUNT


async def test_a_locked_empty_lane_does_not_block_producers(
    store: MariaDBStore, sql: Session, other_session: Session
) -> None:
    """At REPEATABLE READ the lock of an empty range would: our sessions have READ COMMITTED."""
    async with store.writes._connection.open() as connection, connection.cursor() as cursor:
        await cursor.execute("START TRANSACTION")
        await cursor.execute("SELECT id FROM outbox_message WHERE lane = 7 FOR UPDATE")
        await other_session.execute("SET innodb_lock_wait_timeout = 1")
        await other_session.insert(100)
        await cursor.execute("ROLLBACK")
    assert await sql.value("SELECT count(*) FROM outbox_message") == 100
