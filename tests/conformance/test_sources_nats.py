"""NATS JetStream fulfils the contract of all sources, behind a proxy that can cut the connection."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from urllib.parse import quote, unquote

import nats
import pytest
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from pillarbox.core.source import Incoming
from pillarbox.testing.conformance.sources import SourceCapabilities, SourceConformance, SourceDeadLetter, SourceHarness
from pillarbox.testing.conformance.sources.harness import PREFETCH
from pillarbox.transports.nats import NatsSource
from tests.conformance.test_nats import PASSWORD, USER
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.nats import NatsServer


class NatsSourceHarness(SourceHarness):
    """A subject for one test; nats-py publishes to it and reads its dead letters."""

    capabilities = SourceCapabilities(survives_restart=True, outages=True)
    secrets = (PASSWORD,)

    def __init__(self, server: NatsServer, proxy: Proxy) -> None:
        self._server = server
        self._proxy = proxy
        self._name = f"test-{uuid.uuid4().hex[:12]}"
        self._made: list[NatsSource] = []
        self._source = self.another(f"nats://{USER}:{PASSWORD}@127.0.0.1:{proxy.port}")

    @property
    def source(self) -> NatsSource:
        return self._source

    @property
    def destination(self) -> str:
        return self._name

    def another(self, url: str | None = None) -> NatsSource:
        source = NatsSource(
            url or self._server.url(), subject=self._name, group="tests", prefetch=PREFETCH, ack_wait="2s"
        )
        self._made.append(source)
        return source

    async def put(self, *messages: Incoming) -> None:
        client = await nats.connect(self._server.url())
        try:
            jetstream = client.jetstream()
            await jetstream.add_stream(name=self._name, subjects=[self._name], duplicate_window=120)
            for message in messages:
                facts = {
                    "eventId": message.event_id,
                    "eventType": message.event_type,
                    "content-type": message.content_type,
                    "correlationId": message.correlation_id,
                    **message.headers,
                }
                headers = {quote(name): quote(value) for name, value in facts.items() if value is not None}
                await jetstream.publish(self._name, message.body, headers=headers)
        finally:
            await client.close()

    async def dead(self) -> list[SourceDeadLetter]:
        client = await nats.connect(self._server.url())
        try:
            return await self._dead(client.jetstream())
        finally:
            await client.close()

    async def _dead(self, jetstream: JetStreamContext) -> list[SourceDeadLetter]:
        stream = f"{self._name}_tests_dlq"
        try:
            last = (await jetstream.stream_info(stream)).state.last_seq
        except NotFoundError:
            return []
        found: list[SourceDeadLetter] = []
        for sequence in range(1, last + 1):
            stored = await jetstream.get_msg(stream, sequence)
            headers = {unquote(name): unquote(value) for name, value in (stored.headers or {}).items()}
            attempts, reason = int(headers["pillarbox-attempts"]), headers["pillarbox-reason"]
            found.append(SourceDeadLetter(headers.get("eventId"), stored.data or b"", attempts, reason))
        return found

    async def restart(self) -> None:
        await asyncio.to_thread(self._server.restart)

    async def cut(self) -> None:
        await self._proxy.cut()

    async def heal(self) -> None:
        await self._proxy.heal()

    async def clean(self) -> None:
        for source in self._made:
            await source.aclose()
        client = await nats.connect(self._server.url())
        jetstream = client.jetstream()
        for info in await jetstream.streams_info():
            if info.config.name is not None and info.config.name.startswith(self._name):
                await jetstream.delete_stream(info.config.name)
        await client.close()


class TestNatsSource(SourceConformance):
    @pytest.fixture
    def server(self, request: pytest.FixtureRequest) -> NatsServer:
        restarts = "restart" in request.node.name
        server: NatsServer = request.getfixturevalue("private_nats" if restarts else "nats_server")
        return server

    @pytest.fixture
    async def harness(self, server: NatsServer) -> AsyncIterator[SourceHarness]:
        async with Proxy(server.port) as proxy:
            harness = NatsSourceHarness(server, proxy)
            yield harness
            await harness.clean()
