"""RabbitMQ fulfils the contract of all sources, behind a proxy that can cut the connection."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pika
import pytest

from pillarbox.core.source import Incoming
from pillarbox.testing.conformance.sources import SourceCapabilities, SourceConformance, SourceDeadLetter, SourceHarness
from pillarbox.testing.conformance.sources.harness import PREFETCH
from pillarbox.transports.rabbitmq import Queue, RabbitMQSource
from tests.integration.consume.broker import RETRY_DELAYS, declared, remove_queues
from tests.integration.rabbitmq.consumer import channel, publish_confirmed, take_all
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.rabbitmq import RabbitMQServer


class RabbitMQSourceHarness(SourceHarness):
    """A queue for one test; pika publishes to it and reads its dead letters."""

    capabilities = SourceCapabilities(survives_restart=True, outages=True)
    secrets = ("guest:guest",)

    def __init__(self, server: RabbitMQServer, proxy: Proxy) -> None:
        self._server = server
        self._proxy = proxy
        self._queue = Queue(name=f"test-{uuid.uuid4().hex[:12]}")
        self._made: list[RabbitMQSource] = []
        self._dead_letters: list[SourceDeadLetter] = []
        self._source = self.another(f"amqp://guest:guest@127.0.0.1:{proxy.port}/")

    @property
    def source(self) -> RabbitMQSource:
        return self._source

    @property
    def destination(self) -> str:
        return self._queue.name

    def another(self, url: str | None = None) -> RabbitMQSource:
        source = RabbitMQSource(
            url or self._server.url(), queue=self._queue, prefetch=PREFETCH, retry_delays=RETRY_DELAYS
        )
        self._made.append(source)
        return source

    async def put(self, *messages: Incoming) -> None:
        await asyncio.to_thread(self._put, messages)

    def _put(self, messages: tuple[Incoming, ...]) -> None:
        with channel(self._server.url()) as broker:
            declared(broker, self._queue)
            broker.confirm_delivery()
            for message in messages:
                properties = pika.BasicProperties(
                    message_id=message.event_id,
                    type=message.event_type,
                    content_type=message.content_type,
                    correlation_id=message.correlation_id,
                    headers=dict(message.headers),
                    delivery_mode=2,
                )
                publish_confirmed(broker, "", self._queue.name, message.body, properties)

    async def dead(self) -> list[SourceDeadLetter]:
        def read_queue() -> None:
            with channel(self._server.url()) as broker:
                declared(broker, Queue(name=f"{self._queue.name}.dlq"))
            for taken in take_all(self._server.url(), f"{self._queue.name}.dlq"):
                headers: dict[str, Any] = dict(taken.properties.headers or {})
                attempts, reason = headers["pillarbox-attempts"], headers["pillarbox-reason"]
                self._dead_letters.append(SourceDeadLetter(taken.properties.message_id, taken.body, attempts, reason))

        await asyncio.to_thread(read_queue)
        return self._dead_letters

    async def restart(self) -> None:
        await asyncio.to_thread(self._server.restart)

    async def cut(self) -> None:
        await self._proxy.cut()

    async def heal(self) -> None:
        await self._proxy.heal()

    async def clean(self) -> None:
        for source in self._made:
            await source.aclose()
        await asyncio.to_thread(remove_queues, self._server.url(), self._queue.name)


class TestRabbitMQSource(SourceConformance):
    @pytest.fixture
    def server(self, request: pytest.FixtureRequest) -> RabbitMQServer:
        restarts = "restart" in request.node.name
        server: RabbitMQServer = request.getfixturevalue("private_rabbitmq" if restarts else "rabbitmq_server")
        return server

    @pytest.fixture
    async def harness(self, server: RabbitMQServer) -> AsyncIterator[SourceHarness]:
        async with Proxy(server.port) as proxy:
            harness = RabbitMQSourceHarness(server, proxy)
            yield harness
            await harness.clean()
