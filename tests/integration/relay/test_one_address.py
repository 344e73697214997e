"""A destination with an address of its own for each event type: one that cannot be used harms only its own events."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any, NamedTuple

import pytest

from pillarbox import Destination, Event, FixedDelay, Outbox, Relay, Route
from pillarbox.core.observations import EventDeadLettered, EventRetried, Observation
from pillarbox.core.transport import Transport
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.waiting import eventually
from pillarbox.transports.nats import NatsTransport
from pillarbox.transports.rabbitmq import RabbitMQTransport
from pillarbox.transports.redis import RedisTransport
from tests.integration.nats.streams import jetstream, stored_ids
from tests.integration.rabbitmq.consumer import channel, take_all
from tests.integration.redis.reading import ids
from tests.servers.nats import NatsServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer

DEFERRALS = 4
"""More than a single outage, and more than the attempts of the retry policy."""


class Broker(NamedTuple):
    """A transport, a destination of which one address cannot be used, and what an operator does and sees."""

    transport: Transport
    destination: Destination
    repair: Callable[[], object]
    received: Callable[[], object]
    """The ids that arrived at that address."""


@asynccontextmanager
async def nats(server: NatsServer, name: str) -> AsyncIterator[Broker]:
    url = server.url()

    async def add_stream(event_type: str) -> None:
        async with jetstream(url) as streams:
            await streams.add_stream(name=f"{name}_{event_type}", subjects=[f"{name}.{event_type}"])

    await add_stream("good")
    async with aclosing(NatsTransport(url, declare=False)) as transport:
        yield Broker(
            transport,
            Destination(NatsTransport.to(subject=f"{name}.{{event_type}}")),
            lambda: add_stream("bad"),
            lambda: stored_ids(url, f"{name}_bad"),
        )
    async with jetstream(url) as streams:
        for event_type in ("good", "bad"):
            await streams.delete_stream(f"{name}_{event_type}")


@asynccontextmanager
async def redis(server: RedisServer, name: str) -> AsyncIterator[Broker]:
    stream = f"{name}.bad"
    with server.client() as client:
        client.set(stream, "not a stream")
        async with aclosing(RedisTransport(server.url())) as transport:
            yield Broker(
                transport,
                Destination(RedisTransport.to(stream=f"{name}.{{event_type}}")),
                lambda: client.delete(stream),
                lambda: ids(server, stream),
            )


@asynccontextmanager
async def rabbitmq(server: RabbitMQServer, name: str) -> AsyncIterator[Broker]:
    url, taken = server.url(), list[str]()

    def received() -> list[str]:
        taken.extend(str(one.properties.message_id) for one in take_all(url, f"{name}.bad"))
        return taken

    def repair() -> None:
        with channel(url) as broker:
            broker.queue_delete(f"{name}.bad")
            broker.queue_declare(f"{name}.bad", durable=True)

    with channel(url) as broker:
        broker.queue_declare(f"{name}.bad")  # it would lose events: it is not durable
    async with aclosing(RabbitMQTransport(url, new_queues="classic")) as transport:
        yield Broker(
            transport,
            Destination(RabbitMQTransport.to(routing_key=f"{name}.{{event_type}}")),
            repair,
            received,
        )
    with channel(url) as broker:
        for event_type in ("good", "bad"):
            broker.queue_delete(f"{name}.{event_type}")


OPEN: Mapping[str, Callable[[Any, str], AbstractAsyncContextManager[Broker]]] = {
    "nats": nats,
    "redis": redis,
    "rabbitmq": rabbitmq,
}


async def result(found: object) -> object:
    return await found if asyncio.iscoroutine(found) else found


@pytest.fixture(params=list(OPEN))
async def broker(request: pytest.FixtureRequest) -> AsyncIterator[Broker]:
    server = request.getfixturevalue(f"{request.param}_server")
    name = f"test-{uuid.uuid4().hex[:12]}"
    async with OPEN[request.param](server, name) as broker:
        yield broker


async def test_an_event_for_an_address_that_cannot_be_used_waits_and_is_never_dead_lettered(broker: Broker) -> None:
    store, deferrals = MemoryStore(), 0
    dead: list[EventDeadLettered] = []
    counted: list[EventRetried] = []

    def observe(observation: Observation) -> None:
        nonlocal deferrals
        match observation:
            case EventDeadLettered():
                dead.append(observation)
            case EventRetried(counted=True):
                counted.append(observation)
            case EventRetried():
                deferrals += observation.message.event_id == "bad-0"
            case _:
                pass

    def record(*events: Event) -> None:
        with store.transaction() as transaction:
            Outbox().record(transaction, *events)

    async def deferred_often_among_accepted_neighbours() -> bool:
        record(*(Event("good", b"x") for _ in range(100)))
        return deferrals >= DEFERRALS or bool(dead)

    record(*(Event("bad", b"x", event_id=f"bad-{n}", key="k") for n in range(3)))
    relay = Relay(
        store=store,
        transports={"t": broker.transport},
        destinations={"all": broker.destination},
        routes=[Route(to=["all"])],
        retry=FixedDelay(delay="10ms", max_attempts=2),
        observers=[observe],
    )
    async with relay:
        await eventually(deferred_often_among_accepted_neighbours, within=120)
        assert (dead, counted) == ([], [])
        await result(broker.repair())

        async def arrived() -> bool:
            return await result(broker.received()) == ["bad-0", "bad-1", "bad-2"]

        await eventually(arrived, within=120)
    assert (dead, counted) == ([], [])
