"""Fixtures: transports and sources that are closed when the test ends, and names of streams that no other test has."""

import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from pillarbox.core.transport import Outgoing
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.redis import RedisSource, RedisTransport
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers import debian, processes
from tests.servers.availability import available
from tests.servers.redis import RedisServer

Batch = Callable[..., list[Outgoing]]


class MakeTransport(Protocol):
    def __call__(self, address: str | None = None, **settings: Any) -> RedisTransport: ...


class MakeSource(Protocol):
    def __call__(self, address: str | None = None, **settings: Any) -> RedisSource: ...


@pytest.fixture
def stream() -> str:
    """The name of a stream that does not exist yet."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def make(request: pytest.FixtureRequest) -> AsyncIterator[MakeTransport]:
    """Transports to the shared server or to another; closed when the test ends."""
    made: list[RedisTransport] = []

    def make_one(address: str | None = None, **settings: Any) -> RedisTransport:
        url = address or request.getfixturevalue("redis_server").url()
        made.append(RedisTransport(url, **settings))
        return made[-1]

    yield make_one
    for transport in made:
        await transport.aclose()


@pytest.fixture
async def consume(request: pytest.FixtureRequest, stream: str) -> AsyncIterator[MakeSource]:
    """Sources on the test's stream, on the shared server or another; closed when the test ends."""
    made: list[RedisSource] = []

    def make_one(address: str | None = None, **settings: Any) -> RedisSource:
        url = address or request.getfixturevalue("redis_server").url()
        made.append(RedisSource(url, **{"stream": stream, "check_interval": "50ms", **settings}))
        return made[-1]

    yield make_one
    for source in made:
        await source.aclose()


@pytest.fixture
async def proxy(redis_server: RedisServer) -> AsyncIterator[Proxy]:
    """A proxy to the shared server that can be cut."""
    async with Proxy(redis_server.port) as proxy:
        yield proxy


@pytest.fixture
def proxied(proxy: Proxy) -> str:
    return f"redis://127.0.0.1:{proxy.port}"


@pytest.fixture
def batch(stream: str) -> Batch:
    """Makes messages for the test's stream."""

    def make_batch(number: int, prefix: str = "e", *, body: bytes | None = None, **address: Any) -> list[Outgoing]:
        to = RedisTransport.to(**{"stream": stream, **address})
        return [outgoing(f"{prefix}{n}", to, body=body) for n in range(number)]

    return make_batch


@pytest.fixture(scope="session")
def certificates() -> Iterator[Path]:
    """An authority of our own and, signed by it, a certificate for `localhost`."""
    folder = processes.make_folder("certificates")
    openssl = available(debian.OPENSSL.path)
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1")

    def request(*arguments: str) -> None:
        processes.run([openssl, "req", "-x509", *new_key, *arguments], folder=folder)

    request(
        "-subj",
        "/CN=authority",
        "-addext",
        "keyUsage=critical,keyCertSign",
        "-keyout",
        "authority.key",
        "-out",
        "authority.pem",
    )
    request(
        *("-subj", "/CN=broker", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=CA:FALSE"),
        *("-CA", "authority.pem", "-CAkey", "authority.key", "-keyout", "broker.key", "-out", "broker.pem"),
    )
    yield folder
    processes.remove_folder(folder)
