"""Arrays sent as one text round-trip for any content, and no connection queries their types."""

import asyncio

import asyncpg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pillarbox.core.fetch import Due, NextInQueues, Parked, Ready
from pillarbox.core.lane import InFlightMessage, RelayRegistration, epochs_of
from pillarbox.core.message import EarlierQuery, Held, KeyQueue
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Resolved, Retry, Split
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.postgres.arrays import literal
from tests.databases import Sql

# All text that PostgreSQL can store: valid UTF-8 without NUL.
CHARACTERS = st.characters(codec="utf-8", exclude_characters="\0") | st.sampled_from("\"\\{}',; \t\n\r\v\f\x01\x7f")
TEXTS = st.text(CHARACTERS) | st.sampled_from(
    ["", "NULL", "null", '"', "\\", '","', '\\"', "{}", "{a,b}", " a ", "é\u2028𐍈"]
)
LISTS = st.lists(st.lists(TEXTS) | st.lists(TEXTS | st.none()), max_size=30)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LISTS)
@example(
    [
        [],
        [""],
        ["NULL", None],
        ['"'],
        ["\\"],
        ['","'],
        ['a","b', "c"],
        ["\\", '"'],
        ["{", "}", ","],
        [" ", "\n", "\x01"],
    ]
)
def test_any_text_round_trips(postgres_url: str, lists: list[list[str | None]]) -> None:
    async def back() -> list[list[str | None]]:
        connection = await asyncpg.connect(postgres_url)
        try:
            return [await connection.fetchval("SELECT $1::text::text[]", literal(texts)) for texts in lists]
        finally:
            await connection.close()

    assert asyncio.run(back()) == lists


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bigint", [0, -1, 2**63 - 1, -(2**63)]),
        ("smallint", []),
        ("integer", [1, None, 3]),
        ("real", [0.25, None, 0.0, 1e-07, 1e20]),
        ("double precision", [0.1, 60, 1e300, float("inf"), 5e-324]),
        ("boolean", [True, False, None]),
        ("text", [None, None]),
    ],
)
async def test_other_values_round_trip(sql: Sql, kind: str, values: list[object]) -> None:
    assert await sql.fetchval(f"SELECT $1::text::{kind}[]", literal(values)) == pytest.approx(values)


STRANGE = ["NULL", '"', "\\", 'a","b', "{a,b}", "a b", "é\u2028𐍈", "'; --"]


async def test_unusual_names_are_fetched_and_settled(store: PostgresStore, sql: Sql) -> None:
    for name in STRANGE:
        await sql.execute(
            "INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key)"
            " VALUES ($1, $1, 'a', 'x', $1)",
            name,
        )
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    epochs = epochs_of(await store.lanes.acquire("a", limit=64))
    found = await store.messages.fetch(Ready(lanes=list(epochs)))
    assert [message.event_id for message in found] == STRANGE
    settled = await store.writes.settle(epochs, [Decision(m, DELIVERED, f"{m.destination}!", 0.25) for m in found])
    assert settled.count == len(STRANGE)
    rows = await sql.fetch("SELECT event_id, destination, seconds FROM outbox_history ORDER BY id")
    assert [tuple(row) for row in rows] == [(name, f"{name}!", 0.25) for name in STRANGE]


async def test_no_connection_of_a_relay_queries_types(store: PostgresStore, sql: Sql) -> None:
    """Querying an array type costs more than a whole batch, on every new connection."""
    asked: list[str] = []
    for connection in (store.messages._connection, store.writes._connection, store.lanes._connection):
        async with connection.open() as driver:
            driver.add_query_logger(lambda record: asked.append(record.query))
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    epochs = epochs_of(await store.lanes.acquire("a", limit=64))
    lanes = list(epochs)
    await store.lanes.renew("a", lease=60, in_flight=[InFlightMessage(event_id="e", destination="orders", seconds=2.0)])
    await sql.execute(
        "INSERT INTO outbox_message (event_type, payload, ordering_key)"
        " SELECT 'a', 'x', 'k' || g FROM generate_series(1, 6) g"
    )
    slot = KeyQueue(lanes[0], "k", "orders")
    for look in (Due(lanes=lanes), Parked(lanes=lanes, destinations=["orders"]), NextInQueues(queues=[slot])):
        assert await store.messages.fetch(look) == []
    delivered, retried, dead, held, split, noted = await store.messages.fetch(Ready(lanes=lanes))
    await store.messages.earlier([EarlierQuery(*slot, 1)])
    await store.messages.orphaned_queues(lanes, limit=10)
    await store.messages.parked_destinations(lanes)
    outcomes = ((delivered, DELIVERED), (retried, Retry(delay=60, error="no")), (dead, Dead(error="no")))
    decisions = [Decision(message, outcome, "orders", 0.25) for message, outcome in outcomes]
    assert (await store.writes.settle(epochs, decisions)).count == len(decisions)
    await store.writes.hold(epochs, [Resolved(held, "orders")], Held.PARKED)
    await store.writes.split(epochs, [Split(split, ("x", "y"))])
    await store.writes.count_attempt(epochs, [Resolved(noted, "orders")], error="no")
    await store.writes.execute_requests(epochs, in_flight=[noted.position])
    await store.lanes.release("a", epochs)
    assert asked
    assert not [query for query in asked if "typeinfo" in query]
