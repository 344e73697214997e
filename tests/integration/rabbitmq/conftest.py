"""Fixtures: transports that are closed, and queues and exchanges that are deleted, when the test ends."""

import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Protocol

import pytest

from pillarbox.core.transport import Outgoing
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.rabbitmq import RabbitMQTransport
from tests.integration.rabbitmq.consumer import channel
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.rabbitmq import RabbitMQServer


class MakeTransport(Protocol):
    def __call__(self, address: str | None = None, **settings: Any) -> RabbitMQTransport: ...


@pytest.fixture
def url(rabbitmq_server: RabbitMQServer) -> str:
    return rabbitmq_server.url()


@pytest.fixture
async def make(url: str) -> AsyncIterator[MakeTransport]:
    """Transports to the shared broker or to another; closed when the test ends."""
    made: list[RabbitMQTransport] = []

    def make_one(address: str | None = None, **settings: Any) -> RabbitMQTransport:
        made.append(RabbitMQTransport(address or url, **settings))
        return made[-1]

    yield make_one
    for transport in made:
        await transport.aclose()


@pytest.fixture
def new_name(url: str) -> Iterator[Callable[[], str]]:
    """Names for queues and exchanges, which are deleted from the shared broker when the test ends."""
    names: list[str] = []

    def new() -> str:
        names.append(f"test-{uuid.uuid4().hex[:12]}")
        return names[-1]

    yield new
    with channel(url) as broker:
        for name in names:
            broker.queue_delete(name)
            broker.exchange_delete(name)


@pytest.fixture
def queue(new_name: Callable[[], str]) -> str:
    """The name of a queue that does not exist yet."""
    return new_name()


@pytest.fixture
def exchange(new_name: Callable[[], str]) -> str:
    """The name of an exchange that does not exist yet."""
    return new_name()


@pytest.fixture
async def proxy(rabbitmq_server: RabbitMQServer) -> AsyncIterator[Proxy]:
    """A proxy to the shared broker that can be cut."""
    async with Proxy(rabbitmq_server.port) as proxy:
        yield proxy


@pytest.fixture
def proxied(proxy: Proxy) -> str:
    return f"amqp://guest:guest@127.0.0.1:{proxy.port}/"


@pytest.fixture
def batch(queue: str) -> Callable[..., list[Outgoing]]:
    """Makes messages for the test's queue, over the default exchange."""

    def make_batch(number: int, prefix: str = "e") -> list[Outgoing]:
        return [outgoing(f"{prefix}{n}", RabbitMQTransport.to(routing_key=queue)) for n in range(number)]

    return make_batch
