"""NATS JetStream fulfils the contract of all transports, behind a proxy that can cut the connection."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from urllib.parse import unquote

import nats
import pytest
from nats.js.errors import NotFoundError

from pillarbox.core.transport import Address, Outgoing
from pillarbox.testing.conformance.transports import (
    Arrived,
    TransportCapabilities,
    TransportConformance,
    TransportHarness,
)
from pillarbox.transports.nats import NatsAddress, NatsTransport
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.nats import NatsServer

USER, PASSWORD = "app", "s3cret-of-nats"


class NatsHarness(TransportHarness):
    """Addresses are subjects for which the transport creates streams; nats-py reads what arrived."""

    capabilities = TransportCapabilities(
        ordered=True, refuses=True, survives_restart=True, outages=True, deduplicates=True
    )
    secrets = (PASSWORD,)

    def __init__(self, server: NatsServer, proxy: Proxy) -> None:
        self._server = server
        self._proxy = proxy
        self._transport = NatsTransport(f"nats://{USER}:{PASSWORD}@127.0.0.1:{proxy.port}")
        self._name = uuid.uuid4().hex
        self._streams: set[str] = set()

    @property
    def transport(self) -> NatsTransport:
        return self._transport

    def address(self, n: int = 0) -> Address:
        return NatsTransport.to(subject=f"test-{self._name}-{n}")

    def spoiled(self, good: Outgoing) -> Outgoing:
        return good._replace(body=b"x" * 1_048_576)

    async def received(self, address: Address) -> list[Arrived]:
        assert isinstance(address, NatsAddress)
        client = await nats.connect(self._server.url())
        try:
            jetstream = client.jetstream()
            try:
                last = (await jetstream.stream_info(address.subject)).state.last_seq
            except NotFoundError:
                return []
            self._streams.add(address.subject)
            found: list[Arrived] = []
            for sequence in range(1, last + 1):
                stored = await jetstream.get_msg(address.subject, sequence)
                headers = {unquote(name): unquote(value) for name, value in (stored.headers or {}).items()}
                found.append(Arrived(headers["eventId"], stored.data or b"", headers, headers["content-type"]))
            return found
        finally:
            await client.close()

    async def restart(self) -> None:
        await asyncio.to_thread(self._server.restart)

    async def cut(self) -> None:
        await self._proxy.cut()

    async def heal(self) -> None:
        await self._proxy.heal()

    async def clean(self) -> None:
        """Delete the streams of the test."""
        client = await nats.connect(self._server.url())
        for stream in self._streams:
            await client.jetstream().delete_stream(stream)
        await client.close()


class TestNats(TransportConformance):
    @pytest.fixture
    def server(self, request: pytest.FixtureRequest) -> NatsServer:
        restarts = "restart" in request.node.name
        server: NatsServer = request.getfixturevalue("private_nats" if restarts else "nats_server")
        return server

    @pytest.fixture
    async def harness(self, server: NatsServer) -> AsyncIterator[TransportHarness]:
        async with Proxy(server.port) as proxy:
            harness = NatsHarness(server, proxy)
            yield harness
            await harness.transport.aclose()
            await harness.clean()
