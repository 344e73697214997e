"""A settlement and a concurrent takeover of its lane: only one of them may succeed.

The second test removes the lock from the settlement and shows that the first one would then fail.
"""

import asyncio

from pillarbox.core.fetch import Ready
from pillarbox.core.lane import Epochs, RelayRegistration, epochs_of
from pillarbox.core.message import Message
from pillarbox.core.outcome import DELIVERED, Decision
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.waiting import eventually
from tests.databases import Sql

LOCK = "ORDER BY l.lane FOR NO KEY UPDATE OF l"


async def one_in_flight(store: PostgresStore, sql: Sql) -> tuple[Message, Epochs]:
    """Relay `a` owns every lane and has fetched the only message."""
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    epochs = epochs_of(await store.lanes.acquire("a", limit=64))
    await sql.execute("INSERT INTO outbox_message (event_type, payload) VALUES ('order.placed', '{}')")
    [message] = await store.messages.fetch(Ready(lanes=list(epochs)))
    return message, epochs


async def waits_for_a_lock(sql: Sql) -> bool:
    return bool(
        await sql.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pillarbox' AND wait_event_type = 'Lock'"
            " AND datname = current_database()"
        )
    )


async def settled_under_a_lost_lane(store: PostgresStore, other: PostgresStore, sql: Sql, other_session: Sql) -> bool:
    """Pause a settlement, let another relay take over, resume it; returns whether both succeeded."""
    message, epochs = await one_in_flight(store, sql)
    holding = other_session.transaction()
    await holding.start()
    await other_session.execute("SELECT FROM outbox_message FOR UPDATE")
    settlement = asyncio.create_task(store.writes.settle(epochs, [Decision(message, DELIVERED, "")]))
    await eventually(lambda: waits_for_a_lock(sql))

    await sql.execute("UPDATE outbox_relay SET lease_until = now() - interval '1 second' WHERE id = 'a'")
    await other.lanes.join(RelayRegistration(id="b"), lease=60)
    taken = {owned.lane for owned in await other.lanes.acquire("b", limit=64)}

    await holding.rollback()
    settled = await settlement
    return message.lane in taken and settled.count > 0


async def test_a_lane_is_not_taken_from_a_settlement_in_progress(
    store: PostgresStore, other_store: PostgresStore, sql: Sql, other_session: Sql
) -> None:
    assert not await settled_under_a_lost_lane(store, other_store, sql, other_session)


async def test_without_the_lock_both_would_write(
    store: PostgresStore, other_store: PostgresStore, sql: Sql, other_session: Sql
) -> None:
    assert LOCK in store.writes._deliver
    store.writes._deliver = store.writes._deliver.replace(LOCK, "")
    assert await settled_under_a_lost_lane(store, other_store, sql, other_session)


async def test_a_settlement_that_waited_for_a_takeover_writes_nothing(
    store: PostgresStore, sql: Sql, other_session: Sql
) -> None:
    message, epochs = await one_in_flight(store, sql)
    takeover = other_session.transaction()
    await takeover.start()
    await other_session.execute("UPDATE outbox_lane SET owner = 'b', epoch = epoch + 1 WHERE lane = $1", message.lane)
    settlement = asyncio.create_task(store.writes.settle(epochs, [Decision(message, DELIVERED, "")]))
    await eventually(lambda: waits_for_a_lock(sql))
    await takeover.commit()

    settled = await settlement

    assert (settled.count, settled.lost) == (0, frozenset({message.lane}))
    assert await sql.fetchval("SELECT count(*) FROM outbox_message") == 1


async def test_a_lane_taken_by_a_relay_that_joined_meanwhile_is_not_taken_again(
    store: PostgresStore, sql: Sql, other_session: Sql
) -> None:
    """The snapshot of the taker does not contain the new relay; its lane must not look unowned."""
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    # Pause the statement after its snapshot and before it reads lanes.
    alive = "WHERE EXISTS (SELECT FROM alive)"
    assert alive in store.lanes._acquire
    gate = f"{alive} AND (SELECT 1 FROM pg_advisory_lock_shared(7)) = 1"
    store.lanes._acquire = store.lanes._acquire.replace(alive, gate)
    await other_session.execute("SELECT pg_advisory_lock(7)")
    take = asyncio.create_task(store.lanes.acquire("a", limit=64))
    await eventually(lambda: waits_for_a_lock(sql))
    await sql.execute("INSERT INTO outbox_relay (id, lease_until) VALUES ('b', now() + interval '60 seconds')")
    await sql.execute("UPDATE outbox_lane SET owner = 'b', epoch = epoch + 1 WHERE lane < 32")
    await other_session.execute("SELECT pg_advisory_unlock(7)")

    assert [owned.lane for owned in await take] == list(range(32, 64))
