"""RabbitMQ fulfils the contract of all transports, behind a proxy that can cut the connection."""

import asyncio
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator

import pytest

from pillarbox.core.transport import Address, Outgoing
from pillarbox.testing.conformance.transports import (
    Arrived,
    TransportCapabilities,
    TransportConformance,
    TransportHarness,
)
from pillarbox.transports.rabbitmq import RabbitMQAddress, RabbitMQTransport
from tests.integration.rabbitmq.consumer import channel, take_all
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.rabbitmq import RabbitMQServer


class RabbitMQHarness(TransportHarness):
    """Addresses are queues that the transport declares itself; pika reads what arrived."""

    capabilities = TransportCapabilities(ordered=True, routes=True, refuses=True, survives_restart=True, outages=True)
    secrets = ("guest:guest",)

    def __init__(self, server: RabbitMQServer, proxy: Proxy) -> None:
        self._server = server
        self._proxy = proxy
        self._transport = RabbitMQTransport(f"amqp://guest:guest@127.0.0.1:{proxy.port}/%2F")
        self._name = uuid.uuid4().hex
        self._taken: dict[str, list[Arrived]] = defaultdict(list)

    @property
    def transport(self) -> RabbitMQTransport:
        return self._transport

    def address(self, n: int = 0) -> Address:
        queue = f"{self._name}-{n}"
        self._taken.setdefault(queue, [])
        return RabbitMQTransport.to(routing_key=queue)

    def unroutable(self) -> Address:
        return RabbitMQTransport.to(exchange="amq.direct", routing_key=f"{self._name}-unroutable")

    def spoiled(self, good: Outgoing) -> Outgoing:
        return good._replace(content_type="x" * 256)

    async def received(self, address: Address) -> list[Arrived]:
        assert isinstance(address, RabbitMQAddress)
        for taken in await asyncio.to_thread(take_all, self._server.url(), address.routing_key):
            seen = taken.properties
            headers = {name: str(value) for name, value in (seen.headers or {}).items()}
            arrived = Arrived(str(seen.message_id), taken.body, headers, str(seen.content_type))
            self._taken[address.routing_key].append(arrived)
        return self._taken[address.routing_key]

    async def restart(self) -> None:
        await asyncio.to_thread(self._server.restart)

    async def cut(self) -> None:
        await self._proxy.cut()

    async def heal(self) -> None:
        await self._proxy.heal()

    def clean(self) -> None:
        """Delete the queues of the test."""
        with channel(self._server.url()) as broker:
            for queue in self._taken:
                broker.queue_delete(queue)


class TestRabbitMQ(TransportConformance):
    @pytest.fixture
    def server(self, request: pytest.FixtureRequest) -> RabbitMQServer:
        restarts = "restart" in request.node.name
        server: RabbitMQServer = request.getfixturevalue("private_rabbitmq" if restarts else "rabbitmq_server")
        return server

    @pytest.fixture
    async def harness(self, server: RabbitMQServer) -> AsyncIterator[TransportHarness]:
        async with Proxy(server.port) as proxy:
            harness = RabbitMQHarness(server, proxy)
            yield harness
            await harness.transport.aclose()
            harness.clean()
