"""Celery fulfils the contract of all transports: each event is a task in a queue of RabbitMQ."""

import asyncio
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator

import pytest
from kombu.utils import json

from pillarbox.core.transport import Address, Outgoing
from pillarbox.integrations.celery import CeleryAddress, CeleryTransport
from pillarbox.testing.conformance.transports import (
    Arrived,
    TransportCapabilities,
    TransportConformance,
    TransportHarness,
)
from tests.integration.rabbitmq.consumer import Taken, channel, take_all
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.rabbitmq import RabbitMQServer


class CeleryHarness(TransportHarness):
    """Addresses are queues that the transport declares itself; pika reads what arrived, and kombu the arguments."""

    capabilities = TransportCapabilities(ordered=True, refuses=True, survives_restart=True, outages=True)
    secrets = ("guest:guest",)

    def __init__(self, server: RabbitMQServer, proxy: Proxy) -> None:
        self._server = server
        self._proxy = proxy
        self._transport = CeleryTransport(f"celery://guest:guest@127.0.0.1:{proxy.port}/%2F")
        self._name = uuid.uuid4().hex
        self._taken: dict[str, list[Arrived]] = defaultdict(list)

    @property
    def transport(self) -> CeleryTransport:
        return self._transport

    def address(self, n: int = 0) -> CeleryAddress:
        queue = f"{self._name}-{{{n}}}"
        self._taken.setdefault(queue, [])
        return CeleryTransport.to(task="shop.tasks.handle", queue=queue)

    def spoiled(self, good: Outgoing) -> Outgoing:
        return good._replace(headers={"larger than a frame": "x" * 200_000})

    async def received(self, address: Address) -> list[Arrived]:
        assert isinstance(address, CeleryAddress)
        for taken in await asyncio.to_thread(take_all, self._server.url(), address.queue):
            self._taken[address.queue].append(_arrived(taken))
        return self._taken[address.queue]

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


def _arrived(taken: Taken) -> Arrived:
    """The event as a task gets it: bytes, or a JSON value, which is found unchanged in the body."""
    headers = {name: str(value) for name, value in (taken.properties.headers or {}).items()}
    assert (headers["task"], taken.properties.content_type) == ("shop.tasks.handle", "application/json")
    [[argument], keywords, _] = json.loads(taken.body)
    assert keywords == {}
    body = argument if isinstance(argument, bytes) else taken.body[2 : taken.body.index(b'], {}, {"callbacks"')]
    return Arrived(headers["id"], body, headers, headers["contentType"])


class TestCelery(TransportConformance):
    @pytest.fixture
    def server(self, request: pytest.FixtureRequest) -> RabbitMQServer:
        restarts = "restart" in request.node.name
        server: RabbitMQServer = request.getfixturevalue("private_rabbitmq" if restarts else "rabbitmq_server")
        return server

    @pytest.fixture
    async def harness(self, server: RabbitMQServer) -> AsyncIterator[TransportHarness]:
        async with Proxy(server.port) as proxy:
            harness = CeleryHarness(server, proxy)
            yield harness
            await harness.transport.aclose()
            harness.clean()
