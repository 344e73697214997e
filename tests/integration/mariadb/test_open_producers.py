"""A producer's open transaction holds up no write of a relay, however few or many rows the table has.

A statement that scans the whole table would wait for the row of the open transaction.
"""

from collections.abc import Sequence

import pytest

from pillarbox.core.fetch import Bounds, Ready
from pillarbox.core.lane import Epochs, RelayRegistration, Settled, epochs_of
from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Outcome, Resolved, Retry
from pillarbox.stores.mariadb import MariaDBStore
from tests.integration.mariadb.session import Session

OUTCOMES: Sequence[Outcome] = (DELIVERED, Retry(delay=9, error="e"), Dead(error="e"), Dead(error="e", block=True))
Size = tuple[int, int, int]
"""Committed rows, messages in flight, and rows of the open transaction."""
SIZES = [(1, 1, 100), (10, 8, 100), (80, 80, 1), (500, 500, 1), (500, 500, 100), (1000, 500, 100), (4000, 500, 100)]


async def in_flight(store: MariaDBStore, sql: Session, rows: int, count: int) -> tuple[list[Message], Epochs]:
    """A relay has so many messages in flight, of so many; its statements wait a second for a lock."""
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    epochs = epochs_of(await store.lanes.acquire("a", limit=64))
    await sql.insert(rows, key="concat('key-', seq % 100)")
    messages = await store.messages.fetch(Ready(lanes=list(epochs), bounds=Bounds(limit=count, quota=count)))
    assert len(messages) == count
    async with store.writes._connection.open() as connection, connection.cursor() as cursor:
        await cursor.execute("SET innodb_lock_wait_timeout = 1")
    return messages, epochs


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("outcomes", [OUTCOMES[:1], OUTCOMES[1:2], OUTCOMES], ids=["delivered", "retry", "all"])
async def test_a_settlement_does_not_wait_for_a_producer(
    store: MariaDBStore,
    sql: Session,
    other_session: Session,
    outcomes: Sequence[Outcome],
    size: Size,
) -> None:
    rows, count, opened = size
    messages, epochs = await in_flight(store, sql, rows, count)
    await other_session.execute("BEGIN")
    await other_session.insert(opened, first=rows + 1, key="concat('key-', seq % 100)")
    decisions = [Decision(message, outcomes[n % len(outcomes)], "orders") for n, message in enumerate(messages)]
    assert (await store.writes.settle(epochs, decisions)).count == count


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("write", ["hold", "count"])
async def test_other_writes_do_not_wait_for_a_producer(
    store: MariaDBStore, sql: Session, other_session: Session, write: str, size: Size
) -> None:
    rows, count, opened = size
    messages, epochs = await in_flight(store, sql, rows, count)
    await other_session.execute("BEGIN")
    await other_session.insert(opened, first=rows + 1, key="concat('key-', seq % 100)")
    resolved = [Resolved(message, "orders") for message in messages]
    written: Settled = await (
        store.writes.hold(epochs, resolved, Held.PARKED)
        if write == "hold"
        else store.writes.count_attempt(epochs, resolved, error="e")
    )
    assert written.count == count
