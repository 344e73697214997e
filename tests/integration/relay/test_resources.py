"""Resources of a relay: few connections and bounded messages in flight for any backlog; several share a process."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing

import asyncpg
import pytest

from pillarbox import Handlers, Relay, RelayConfig
from pillarbox.core.observations import LanesAcquired, Observation
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.waiting import eventually
from pillarbox.transports.handlers import HandlerContext, ReceivedEvent
from tests.databases import Sql

BACKLOG = 1_500
CONFIG = RelayConfig(batch_size=50, max_in_flight_batches=2, poll_interval="50ms")


@pytest.fixture
async def sql(postgres_url: str) -> AsyncIterator[Sql]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


async def fill(sql: Sql, events: int) -> None:
    await sql.execute(
        "INSERT INTO outbox_message (event_type, payload, ordering_key)"
        f" SELECT 'a', convert_to('{{}}', 'UTF8'), 'key ' || g % 500 FROM generate_series(1, {events}) g"
    )


async def connections(sql: Sql) -> int:
    """The number of other connections to this database."""
    found: int = await sql.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    return found


async def test_connections_and_messages_in_flight_do_not_grow_with_the_backlog(sql: Sql, postgres_url: str) -> None:
    handlers = Handlers()
    seen: list[int] = []
    counted: list[int] = []

    @handlers.on("a", name="counting")
    async def count(event: ReceivedEvent, context: HandlerContext) -> None:
        seen.append(len(relay._context.in_flight))
        if len(seen) % 150 == 0:
            counted.append(await connections(sql))

    async with aclosing(PostgresStore(postgres_url)) as store:
        relay = Relay(store=store, transports={"handlers": handlers}, config=CONFIG)
        await fill(sql, BACKLOG)
        await relay.run_until_empty()
        at_the_end = await connections(sql)
    assert len(seen) == BACKLOG
    assert max(seen) <= CONFIG.max_in_flight
    assert max(counted) <= 6
    assert at_the_end <= 6
    await eventually(lambda: _none(sql))


async def _none(sql: Sql) -> bool:
    return await connections(sql) == 0


async def test_several_relays_in_one_process_share_the_lanes(sql: Sql, postgres_url: str) -> None:
    handled: list[str] = []
    lanes: dict[str, int] = {}

    def note(observation: Observation) -> None:
        if isinstance(observation, LanesAcquired):
            lanes[observation.relay] = lanes.get(observation.relay, 0) + len(observation.lanes)

    async with AsyncExitStack() as stack:
        for _ in range(3):
            handlers = Handlers()

            @handlers.on("a", name="all")
            async def handle(event: ReceivedEvent, context: HandlerContext) -> None:
                handled.append(event.event_id)

            store = await stack.enter_async_context(aclosing(PostgresStore(postgres_url)))
            config = RelayConfig(lease="60s", heartbeat_interval="200ms", send_timeout="2s", poll_interval="50ms")
            relay = Relay(store=store, transports={"handlers": handlers}, config=config, observers=[note])
            await stack.enter_async_context(relay)

        async def shared() -> bool:
            owned = await sql.fetch("SELECT count(*) AS n FROM outbox_lane GROUP BY owner")
            return sorted(row["n"] for row in owned) == [20, 22, 22]

        await eventually(shared, within=90)
        await fill(sql, 600)
        await eventually(lambda: len(handled) >= 600, within=90)
    assert len(handled) == len(set(handled)) == 600
    assert len(lanes) == 3
