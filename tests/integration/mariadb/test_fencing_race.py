"""A settlement and a concurrent takeover of its lane: only one of them may succeed.

The second test removes the lock from the settlement and shows that the first one would then fail.
"""

import asyncio
from typing import Any

from pillarbox.core.fetch import Ready
from pillarbox.core.lane import Epochs, RelayRegistration, epochs_of
from pillarbox.core.message import Message
from pillarbox.core.outcome import DELIVERED, Decision
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.stores.mariadb.driver import Result
from pillarbox.testing.waiting import eventually
from tests.integration.mariadb.session import Session

LOCK = "ORDER BY lane FOR UPDATE"


async def one_in_flight(store: MariaDBStore, sql: Session) -> tuple[Message, Epochs]:
    """Relay `a` owns every lane and has fetched the only message."""
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    epochs = epochs_of(await store.lanes.acquire("a", limit=64))
    await sql.insert()
    [message] = await store.messages.fetch(Ready(lanes=list(epochs)))
    return message, epochs


async def settled_under_a_lost_lane(
    store: MariaDBStore, other: MariaDBStore, sql: Session, other_session: Session
) -> bool:
    """Pause a settlement, let another relay take over, resume it; returns whether both succeeded."""
    message, epochs = await one_in_flight(store, sql)
    await other_session.execute("BEGIN")
    await other_session.execute("SELECT id FROM outbox_message FOR UPDATE")
    settlement = asyncio.create_task(store.writes.settle(epochs, [Decision(message, DELIVERED, "")]))
    await eventually(sql.waits_for_a_lock)

    await sql.execute("UPDATE outbox_relay SET lease_until = utc_timestamp() - INTERVAL 1 SECOND WHERE id = 'a'")
    await other.lanes.join(RelayRegistration(id="b"), lease=60)
    taken = {owned.lane for owned in await other.lanes.acquire("b", limit=64)}

    await other_session.execute("ROLLBACK")
    settled = await settlement
    return message.lane in taken and settled.count > 0


async def test_a_lane_is_not_taken_from_a_settlement_in_progress(
    store: MariaDBStore, other_store: MariaDBStore, sql: Session, other_session: Session
) -> None:
    assert not await settled_under_a_lost_lane(store, other_store, sql, other_session)


async def test_without_the_lock_both_would_write(
    store: MariaDBStore, other_store: MariaDBStore, sql: Session, other_session: Session
) -> None:
    statements = store.writes._sql

    def without_lock(name: str, /, *variants: str, **values: str) -> str:
        return statements(name, *variants, **values).replace(LOCK, "")

    assert LOCK in statements("lock_lanes")
    store.writes._sql = without_lock
    assert await settled_under_a_lost_lane(store, other_store, sql, other_session)


async def test_a_settlement_that_waited_for_a_takeover_writes_nothing(
    store: MariaDBStore, sql: Session, other_session: Session
) -> None:
    message, epochs = await one_in_flight(store, sql)
    await other_session.execute("BEGIN")
    await other_session.execute("UPDATE outbox_lane SET owner = 'b', epoch = epoch + 1 WHERE lane = %s", message.lane)
    settlement = asyncio.create_task(store.writes.settle(epochs, [Decision(message, DELIVERED, "")]))
    await eventually(sql.waits_for_a_lock)
    await other_session.execute("COMMIT")

    settled = await settlement

    assert (settled.count, settled.lost) == (0, frozenset({message.lane}))
    assert await sql.value("SELECT count(*) FROM outbox_message") == 1


async def test_a_lane_of_a_relay_that_joined_meanwhile_is_not_taken(
    store: MariaDBStore, sql: Session, other_session: Session
) -> None:
    """The statement that looks for free lanes may not see a relay that joined after it began."""
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    steps: Any = store.lanes._acquired("a", 64)
    await sql.execute("INSERT INTO outbox_relay (id, lease_until) VALUES ('b', utc_timestamp() + INTERVAL 60 SECOND)")
    # As a snapshot without relay b shows the lanes.
    answers: list[list[tuple[Any, ...]]] = [[(1,)], [], [(0, "b", 3, 0), (1, None, 0, 0)], [("b",)]]
    next(steps)
    asked = [steps.send(Result(rows, len(rows))) for rows in answers]
    assert asked[-1][1] == {"relay": "a", "lanes": [1]}
