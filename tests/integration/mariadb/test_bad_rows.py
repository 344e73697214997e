"""A row that plain SQL spoilt, or that cannot be settled, becomes a dead letter and does not affect others."""

import pytest

from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.fetch import Ready
from pillarbox.core.lane import Epochs, RelayRegistration, epochs_of
from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Resolved, Retry, Split
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.testing.lookup import dead_letters
from tests.integration.mariadb.session import Session

NO_BAD = "ALTER TABLE {table} ADD CONSTRAINT no_bad_ck CHECK (event_id <> 'e3')"


async def in_flight(store: MariaDBStore, sql: Session, count: int = 6) -> tuple[list[Message], Epochs]:
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    epochs = epochs_of(await store.lanes.acquire("a", limit=64))
    await sql.insert(count)
    return await store.messages.fetch(Ready(lanes=list(epochs))), epochs


@pytest.mark.parametrize(
    "columns",
    [
        "event_type = ''",
        "event_type = 'a\\nb'",
        "headers = '[]'",
        "headers = 'no'",
        "held = 'sleeping'",
        "held = 'waiting'",
        "attempts = -1",
        "occurred_at = '0000-00-00'",
        "ordering_key = repeat('ä', 200)",
        "event_id = ''",
    ],
)
async def test_the_table_rejects_what_a_relay_could_not_send(sql: Session, columns: str) -> None:
    await sql.insert(2)
    await sql.execute("SET sql_mode = 'STRICT_ALL_TABLES'")
    with pytest.raises(Exception, match=r"(?i)constraint|incorrect|too long"):
        await sql.execute(f"UPDATE outbox_message SET {columns} WHERE event_id = 'e1'")
    assert await sql.value("SELECT count(*) FROM outbox_message WHERE event_type = 'order.placed'") == 2


async def test_a_delivery_whose_history_is_refused_becomes_a_dead_letter(store: MariaDBStore, sql: Session) -> None:
    await sql.execute(NO_BAD.format(table="outbox_history"))
    found, epochs = await in_flight(store, sql)
    settled = await store.writes.settle(epochs, [Decision(message, DELIVERED, "orders") for message in found])
    assert settled.count == 6
    assert await sql.value("SELECT count(*) FROM outbox_history") == 5
    [dead] = await dead_letters(store)
    assert dead.event_id == "e3"
    assert "it was delivered" in dead.error
    assert "no_bad_ck" in dead.error


async def test_a_retry_that_is_refused_becomes_a_dead_letter(store: MariaDBStore, sql: Session) -> None:
    found, epochs = await in_flight(store, sql)
    await sql.execute(
        "ALTER TABLE outbox_message ADD CONSTRAINT no_bad_ck CHECK (event_id <> 'e3' OR available_at IS NULL)"
    )
    decisions = [Decision(message, Retry(delay=60, error="down"), "orders") for message in found]
    assert (await store.writes.settle(epochs, decisions)).count == 6
    assert await sql.value("SELECT count(*) FROM outbox_message WHERE destination = 'orders'") == 5
    assert [dead.event_id for dead in await dead_letters(store)] == ["e3"]


async def test_what_cannot_even_be_dead_lettered_is_named(store: MariaDBStore, sql: Session) -> None:
    await sql.execute(NO_BAD.format(table="outbox_dead_letter"))
    found, epochs = await in_flight(store, sql)
    with pytest.raises(RowsRefusedError) as raised:
        await store.writes.settle(epochs, [Decision(message, Dead(error="no"), "orders") for message in found])
    [bad] = [message for message in found if message.event_id == "e3"]
    assert raised.value.positions == frozenset({bad.position})
    assert not raised.value.retryable
    assert await sql.value("SELECT count(*) FROM outbox_dead_letter") == 5


async def test_holds_and_splits_isolate_a_refused_row(store: MariaDBStore, sql: Session) -> None:
    found, epochs = await in_flight(store, sql)
    await sql.execute(
        "ALTER TABLE outbox_message ADD CONSTRAINT no_bad_ck CHECK (event_id <> 'e3' OR destination <> 'parked')"
    )
    assert (await store.writes.hold(epochs, [Resolved(one, "parked") for one in found[:3]], Held.PARKED)).count == 3
    assert (await store.writes.split(epochs, [Split(one, ("a", "parked")) for one in found[3:]])).count == 6
    assert [dead.event_id for dead in await dead_letters(store)] == ["e3"]


async def test_an_error_shows_no_value_of_a_row(store: MariaDBStore, sql: Session) -> None:
    found, epochs = await in_flight(store, sql, 2)
    await sql.execute("ALTER TABLE outbox_attempt ADD UNIQUE KEY one_error (error(50))")
    decisions = [Decision(message, Retry(delay=0, error="canary"), "orders") for message in found]
    assert (await store.writes.settle(epochs, decisions)).count == 2
    [dead] = await dead_letters(store)
    assert "Duplicate entry '…' for key 'one_error'" in dead.error
    assert "canary" not in dead.error


async def test_a_request_that_is_refused_is_closed_with_the_reason(store: MariaDBStore, sql: Session) -> None:
    _, epochs = await in_flight(store, sql)
    await sql.execute(NO_BAD.format(table="outbox_dead_letter"))
    await store.admin.requests.add("dead_letter", [(f"e{n}", "") for n in range(1, 7)], by="anna")
    while (await store.writes.execute_requests(epochs)).done:
        pass
    results = dict(await sql.execute("SELECT event_id, result FROM outbox_request"))
    assert "no_bad_ck" in results.pop("e3")
    assert set(results.values()) == {"done"}
    assert await sql.value("SELECT count(*) FROM outbox_message") == 1
