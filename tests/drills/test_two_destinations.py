"""A relay with a destination on RabbitMQ and one on NATS, one of which is down for a minute. `make drills`."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, closing
from pathlib import Path

import pytest

from pillarbox import Destination, Event, Outbox, Relay, RelayConfig, Route
from pillarbox.core.observations import EventDelivered, Observation
from pillarbox.retry_policies import FixedDelay
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.transports.harness import TransportHarness
from pillarbox.testing.waiting import eventually
from tests.conformance.test_nats import NatsHarness
from tests.conformance.test_rabbitmq import RabbitMQHarness
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.nats import NatsServer
from tests.servers.rabbitmq import RabbitMQServer

OUTAGE = 60.0
KEYS = BATCH = 25
PERIOD = 0.5
"""Seconds from one batch to the next."""
MAX_ATTEMPTS = 2
"""An outage that used up attempts would dead-letter events."""
BOUND = 300.0


@pytest.fixture
async def brokers(
    rabbitmq_server: RabbitMQServer, nats_server: NatsServer
) -> AsyncIterator[dict[str, TransportHarness]]:
    async with AsyncExitStack() as stack:
        rabbitmq = RabbitMQHarness(rabbitmq_server, await stack.enter_async_context(Proxy(rabbitmq_server.port)))
        nats = NatsHarness(nats_server, await stack.enter_async_context(Proxy(nats_server.port)))
        yield {"rabbitmq": rabbitmq, "nats": nats}
        for harness in (rabbitmq, nats):
            await harness.transport.aclose()
        rabbitmq.clean()
        await nats.clean()


def record(path: Path, first: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        numbers = range(first, first + BATCH)
        Outbox().record(connection, *(Event("o.p", {}, event_id=f"e{n}", key=f"k{n % KEYS}") for n in numbers))
        connection.execute("COMMIT")


@pytest.mark.parametrize("down", ["rabbitmq", "nats"])
async def test_a_broker_that_is_down_for_a_minute_delays_only_its_own_events(
    tmp_path: Path, brokers: dict[str, TransportHarness], down: str
) -> None:
    delivered: dict[str, set[str]] = {name: set() for name in brokers}

    def observe(observation: Observation) -> None:
        if isinstance(observation, EventDelivered):
            delivered[observation.destination].add(observation.message.event_id)

    path, addresses = tmp_path / "outbox.db", {name: harness.address() for name, harness in brokers.items()}
    [other] = brokers.keys() - {down}
    recorded = 0

    async def record_and_deliver(*to: str) -> None:
        """Each batch is delivered before the next is recorded: no event waits for the broker that is down."""
        nonlocal recorded
        await asyncio.to_thread(record, path, recorded)
        recorded += BATCH
        await eventually(lambda: all(len(delivered[one]) == recorded for one in to), within=BOUND)

    async with aclosing(SqliteStore(path)) as store:
        await store.schema.apply()
        async with Relay(
            store=store,
            transports={name: harness.transport for name, harness in brokers.items()},
            destinations={name: Destination(address) for name, address in addresses.items()},
            routes=[Route(to=list(brokers))],
            retry=FixedDelay(delay="100ms", max_attempts=MAX_ATTEMPTS),
            config=RelayConfig(poll_interval="100ms", send_timeout="2s"),
            observers=[observe],
        ):
            await record_and_deliver(*brokers)
            before = len(delivered[down])
            await brokers[down].cut()
            began, batches = time.monotonic(), 0
            while time.monotonic() - began < OUTAGE:
                due = time.monotonic() + PERIOD
                await record_and_deliver(other)
                await eventually(lambda: time.monotonic() >= due)  # noqa: B023 - called at once
                batches += 1
            assert (len(delivered[down]), len(delivered[other])) == (before, recorded)
            await brokers[down].heal()
            await eventually(lambda: len(delivered[down]) == recorded, within=BOUND)
            assert (await store.admin.dead_letters.list(limit=1)).dead_letters == []
    assert batches > 1
    for name, harness in brokers.items():
        arrived = [one.event_id for one in await harness.received(addresses[name])]
        for key in range(KEYS):
            own = [one for one in dict.fromkeys(arrived) if int(one[1:]) % KEYS == key]
            assert own == [f"e{n}" for n in range(key, recorded, KEYS)]
