"""Deadlocks: relays cannot cause one among themselves, and one with another session loses nothing."""

import asyncio

import pytest

from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.fetch import Bounds, Ready
from pillarbox.core.lane import Epochs
from pillarbox.core.message import Message
from pillarbox.core.outcome import DELIVERED, Decision
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.waiting import eventually
from tests.databases import Sql
from tests.integration.postgres.test_fencing_race import one_in_flight, waits_for_a_lock

LOCK_A_LANE = "SELECT FROM outbox_lane WHERE lane = $1 FOR UPDATE"
COUNT = 200


async def many_in_flight(store: PostgresStore, sql: Sql) -> tuple[list[Message], Epochs]:
    """Messages in many lanes, all in flight in one relay."""
    _, epochs = await one_in_flight(store, sql)
    await sql.execute(
        "INSERT INTO outbox_message (event_type, payload) SELECT 'a', '{}' FROM generate_series(2, $1)", COUNT
    )
    messages = await store.messages.fetch(Ready(lanes=list(epochs), bounds=Bounds(limit=COUNT, quota=COUNT)))
    assert len(messages) == COUNT
    return messages, epochs


async def test_a_settlement_is_repeated_after_a_deadlock(store: PostgresStore, sql: Sql, other_session: Sql) -> None:
    messages, epochs = await many_in_flight(store, sql)
    decisions = [Decision(message, DELIVERED, "orders") for message in messages]
    first, *_, last = sorted({message.lane for message in messages})
    # The session that checks for a deadlock first is cancelled: not this one.
    await other_session.execute("SET deadlock_timeout = '1min'")
    locks = other_session.transaction()
    await locks.start()
    # The last lane first: a settlement locks the lanes in order and stops before it.
    await other_session.fetch(LOCK_A_LANE, last)
    settlement = asyncio.create_task(store.writes.settle(epochs, decisions))
    await eventually(lambda: waits_for_a_lock(sql))
    blocked = asyncio.create_task(other_session.fetch(LOCK_A_LANE, first))
    with pytest.raises(StoreUnavailableError, match="deadlock detected"):
        await settlement
    await blocked
    await locks.rollback()
    assert await sql.fetchval("SELECT count(*) FROM outbox_message") == COUNT
    assert (await store.writes.settle(epochs, decisions)).count == COUNT
    assert await sql.fetchval("SELECT count(*) FROM outbox_history") == COUNT


async def test_settlements_lock_lanes_in_one_order(store: PostgresStore, sql: Sql) -> None:
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
