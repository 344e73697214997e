"""Redis Streams fulfil the contract of all transports, behind a proxy that can cut the connection."""

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest

from pillarbox.core.transport import Address, Outgoing
from pillarbox.testing.conformance.transports import (
    Arrived,
    TransportCapabilities,
    TransportConformance,
    TransportHarness,
)
from pillarbox.transports.redis import RedisAddress, RedisTransport
from tests.integration.rabbitmq.proxy import Proxy
from tests.integration.redis.reading import entries
from tests.servers.redis import RedisServer

_OVER_THE_LIMIT = 1024 * 1024 + 1


class RedisHarness(TransportHarness):
    """Addresses are streams that the first message creates; redis-py reads what arrived."""

    capabilities = TransportCapabilities(ordered=True, routes=True, refuses=True, survives_restart=True, outages=True)
    secrets = ("top-secret",)

    def __init__(self, server: RedisServer, proxy: Proxy) -> None:
        self._server = server
        self._proxy = proxy
        self._transport = RedisTransport(f"redis://default:top-secret@127.0.0.1:{proxy.port}/0")
        self._name = uuid.uuid4().hex

    @property
    def transport(self) -> RedisTransport:
        return self._transport

    def address(self, n: int = 0) -> Address:
        return RedisTransport.to(stream=f"{self._name}-{n}")

    def unroutable(self) -> Address:
        return RedisTransport.to(stream=f"{self._name}-missing", create_stream=False)

    def spoiled(self, good: Outgoing) -> Outgoing:
        return good._replace(body=good.body.ljust(_OVER_THE_LIMIT))

    async def received(self, address: Address) -> list[Arrived]:
        assert isinstance(address, RedisAddress)
        found = await asyncio.to_thread(entries, self._server, address.stream)
        return [Arrived(one.text("id"), one.body, one.headers, one.text("content_type")) for one in found]

    async def restart(self) -> None:
        await asyncio.to_thread(self._server.restart)

    async def cut(self) -> None:
        await self._proxy.cut()

    async def heal(self) -> None:
        await self._proxy.heal()


class TestRedis(TransportConformance):
    @pytest.fixture
    def server(self, request: pytest.FixtureRequest) -> RedisServer:
        restarts = "restart" in request.node.name
        server: RedisServer = request.getfixturevalue("private_redis" if restarts else "redis_server")
        return server

    @pytest.fixture
    async def harness(self, server: RedisServer) -> AsyncIterator[TransportHarness]:
        async with Proxy(server.port) as proxy:
            harness = RedisHarness(server, proxy)
            yield harness
            await harness.transport.aclose()
