"""Fixtures: transports that are closed, and streams that are deleted, when the test ends."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Protocol

import pytest

from pillarbox.core.transport import Outgoing
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.nats import NatsSource, NatsTransport
from tests.integration.nats.streams import jetstream
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.nats import NatsServer


class MakeTransport(Protocol):
    def __call__(self, address: str | None = None, **settings: Any) -> NatsTransport: ...


@pytest.fixture
def url(nats_server: NatsServer) -> str:
    return nats_server.url()


@pytest.fixture
async def make(url: str) -> AsyncIterator[MakeTransport]:
    """Transports to the shared server or to another; closed when the test ends."""
    made: list[NatsTransport] = []

    def make_one(address: str | None = None, **settings: Any) -> NatsTransport:
        made.append(NatsTransport(address or url, **settings))
        return made[-1]

    yield make_one
    for transport in made:
        await transport.aclose()


@pytest.fixture
def name(url: str) -> Iterator[str]:
    """The name of a stream that does not exist yet; it is deleted with all whose names begin with it."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    yield name
    asyncio.run(delete_streams(url, name))


async def delete_streams(url: str, prefix: str) -> None:
    async with jetstream(url) as server:
        for info in await server.streams_info():
            if str(info.config.name).startswith(prefix):
                await server.delete_stream(str(info.config.name))


@pytest.fixture
async def proxy(nats_server: NatsServer) -> AsyncIterator[Proxy]:
    """A proxy to the shared server that can be cut."""
    async with Proxy(nats_server.port) as proxy:
        yield proxy


@pytest.fixture
def batch(name: str) -> Callable[..., list[Outgoing]]:
    """Makes messages for the test's subject."""

    def make_batch(number: int, prefix: str = "e") -> list[Outgoing]:
        return [outgoing(f"{prefix}{n}", NatsTransport.to(subject=name)) for n in range(number)]

    return make_batch


@pytest.fixture
async def sources() -> AsyncIterator[list[NatsSource]]:
    """For sources of the test, which are closed when it ends."""
    made: list[NatsSource] = []
    yield made
    for source in made:
        await source.aclose()
