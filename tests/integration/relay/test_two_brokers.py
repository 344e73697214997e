"""One relay with destinations of different kinds: while one broker is down, the others make progress on their own.

`tests/simulation/test_two_transports.py` has the same for a whole minute, on virtual time.
"""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, closing
from pathlib import Path

import pytest

from pillarbox import Destination, Event, Outbox, Relay, RelayConfig, Route
from pillarbox.core.observations import EventDelivered, Observation
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.transports.harness import TransportHarness
from pillarbox.testing.waiting import eventually
from tests.conformance.test_kafka import KafkaHarness
from tests.conformance.test_nats import NatsHarness
from tests.conformance.test_rabbitmq import RabbitMQHarness
from tests.conformance.test_redis import RedisHarness
from tests.conformance.test_webhook import WebhookHarness
from tests.integration.rabbitmq.proxy import Proxy
from tests.integration.webhook.background import Background
from tests.integration.webhook.receiver import Receiver
from tests.servers.kafka import KafkaServer
from tests.servers.nats import NatsServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer

KEYS = 5
BATCH = 50
BOUND = 90.0
KINDS = ["rabbitmq", "redis", "nats", "kafka", "webhook"]


def record(path: Path, first: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        events = [
            Event("order.placed", {"n": n}, event_id=f"e{n}", key=f"k{n % KEYS}") for n in range(first, first + BATCH)
        ]
        Outbox().record(connection, *events)
        connection.execute("COMMIT")


@pytest.fixture
async def brokers(
    rabbitmq_server: RabbitMQServer, redis_server: RedisServer, nats_server: NatsServer, kafka_server: KafkaServer
) -> AsyncIterator[dict[str, TransportHarness]]:
    """One of each kind, whose connection can be cut."""
    async with AsyncExitStack() as stack:
        rabbitmq, redis, nats = [
            await stack.enter_async_context(Proxy(server.port))
            for server in (rabbitmq_server, redis_server, nats_server)
        ]
        background = await stack.enter_async_context(Background())
        receiver = await background.run(Receiver().__aenter__())
        on_rabbitmq, on_nats = RabbitMQHarness(rabbitmq_server, rabbitmq), NatsHarness(nats_server, nats)
        harnesses: dict[str, TransportHarness] = {
            "rabbitmq": on_rabbitmq,
            "redis": RedisHarness(redis_server, redis),
            "nats": on_nats,
            "kafka": KafkaHarness(kafka_server, "2s"),
            "webhook": WebhookHarness(background, receiver),
        }
        yield harnesses
        for harness in harnesses.values():
            await harness.transport.aclose()
        on_rabbitmq.clean()
        await on_nats.clean()
        kafka_server.heal()
        await background.run(receiver.aclose())


@pytest.mark.parametrize("down", KINDS)
async def test_destinations_of_different_kinds_progress_independently(
    tmp_path: Path, brokers: dict[str, TransportHarness], down: str
) -> None:
    if not brokers[down].capabilities.outages:
        pytest.skip("not supported: the broker at KAFKA_URL is not ours to take down")
    delivered: dict[str, list[str]] = {name: [] for name in brokers}

    def observe(observation: Observation) -> None:
        if isinstance(observation, EventDelivered):
            delivered[observation.destination].append(observation.message.event_id)

    def have(number: int, *destinations: str) -> bool:
        return all(len(set(delivered[one])) == number for one in destinations)

    path, addresses = tmp_path / "outbox.db", {name: harness.address() for name, harness in brokers.items()}
    others = [name for name in brokers if name != down]
    async with aclosing(SqliteStore(path)) as store:
        await store.schema.apply()
        async with Relay(
            store=store,
            transports={name: harness.transport for name, harness in brokers.items()},
            destinations={name: Destination(address) for name, address in addresses.items()},
            routes=[Route(to=list(brokers))],
            config=RelayConfig(poll_interval="100ms", send_timeout="2s"),
            observers=[observe],
        ):
            record(path, 0)
            await eventually(lambda: have(BATCH, *brokers), within=BOUND)
            await brokers[down].cut()
            for first in range(BATCH, 6 * BATCH, BATCH):  # every key has events for the broker that is down
                record(path, first)
                await eventually(lambda: have(first + BATCH, *others), within=BOUND)  # noqa: B023 - called at once
            assert len(set(delivered[down])) == BATCH
            await brokers[down].heal()
            await eventually(lambda: have(6 * BATCH, *brokers), within=BOUND)
    for name, harness in brokers.items():
        arrived = [one.event_id for one in await harness.received(addresses[name])]
        for key in range(KEYS):
            own = [one for one in dict.fromkeys(arrived) if int(one[1:]) % KEYS == key]
            assert own == [f"e{n}" for n in range(key, 6 * BATCH, KEYS)]
