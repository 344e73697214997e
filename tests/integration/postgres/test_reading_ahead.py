"""Fetching ahead excludes messages in flight; it never continues from a position.

A transaction that drew its sequence number early may commit late. A relay that continued from a position would miss it,
and the next event of its key would overtake it. The second test does so and shows that the first one would then fail.
"""

import math

from pillarbox.core.fetch import Bounds, Ready
from pillarbox.core.lane import RelayRegistration, epochs_of
from pillarbox.core.message import Message
from pillarbox.statements import Names
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.postgres.statements import PostgresStatements
from tests.databases import Sql

RECORD = "INSERT INTO outbox_message (event_id, event_type, payload, ordering_key) VALUES ($1, 'moved', '', $2)"
FROM_A_POSITION = """y.id > (SELECT coalesce(max(i), 0)
  FROM unnest($6::text::text[]) AS d(ids), unnest(d.ids::bigint[]) AS i) AND $7::text IS NOT NULL"""


async def read_around_a_late_commit(store: PostgresStore, sql: Sql, slow: Sql) -> list[str]:
    """The order in which a relay fetches three events, of which the first commits after it fetched the second."""
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    lanes = list(epochs_of(await store.lanes.acquire("a", limit=64)))
    in_flight: list[Message] = []

    async def read_on() -> None:
        bounds = Bounds(in_flight=[message.position for message in in_flight])
        in_flight.extend(await store.messages.fetch(Ready(lanes=lanes, bounds=bounds)))

    late = slow.transaction()
    await late.start()
    await slow.execute(RECORD, "ship-1", "ship")
    await sql.execute(RECORD, "other-1", "other")
    await read_on()
    await late.commit()
    await sql.execute(RECORD, "ship-2", "ship")
    await read_on()
    await read_on()
    return [message.event_id for message in in_flight]


async def test_a_late_commit_keeps_its_order_within_its_key(store: PostgresStore, sql: Sql, other_session: Sql) -> None:
    assert await read_around_a_late_commit(store, sql, other_session) == ["other-1", "ship-1", "ship-2"]


async def test_fetching_from_a_position_would_break_the_order(
    store: PostgresStore, sql: Sql, other_session: Sql
) -> None:
    not_in_flight = PostgresStatements(Names(schema="public")).render("{not_in_flight}")
    assert not_in_flight in store.messages._ready.plain
    store.messages.low_water_marks.slow = math.inf  # the next fetch is this statement again
    store.messages._ready.plain = store.messages._ready.plain.replace(not_in_flight, FROM_A_POSITION)
    assert await read_around_a_late_commit(store, sql, other_session) == ["other-1", "ship-2"]
