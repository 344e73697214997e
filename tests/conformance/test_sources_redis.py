"""Redis Streams fulfil the contract of all sources, behind a proxy that can cut the connection."""

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest

from pillarbox.core.source import Incoming
from pillarbox.testing.conformance.sources import SourceCapabilities, SourceConformance, SourceDeadLetter, SourceHarness
from pillarbox.testing.conformance.sources.harness import PREFETCH
from pillarbox.transports.redis import RedisSource
from tests.integration.rabbitmq.proxy import Proxy
from tests.integration.redis.reading import entries
from tests.servers.redis import RedisServer


class RedisSourceHarness(SourceHarness):
    """A stream for one test; redis-py writes to it and reads its dead letters."""

    capabilities = SourceCapabilities(survives_restart=True, outages=True)
    secrets = ("top-secret",)

    def __init__(self, server: RedisServer, proxy: Proxy) -> None:
        self._server = server
        self._proxy = proxy
        self._stream = f"test-{uuid.uuid4().hex[:12]}"
        self._made: list[RedisSource] = []
        self._source = self.another(f"redis://default:top-secret@127.0.0.1:{proxy.port}/")

    @property
    def source(self) -> RedisSource:
        return self._source

    @property
    def destination(self) -> str:
        return self._stream

    def another(self, url: str | None = None) -> RedisSource:
        source = RedisSource(
            url or self._server.url(), stream=self._stream, group="tests", prefetch=PREFETCH, check_interval="50ms"
        )
        self._made.append(source)
        return source

    async def put(self, *messages: Incoming) -> None:
        await asyncio.to_thread(self._put, messages)

    def _put(self, messages: tuple[Incoming, ...]) -> None:
        with self._server.client() as client:
            for message in messages:
                properties = {
                    "id": message.event_id,
                    "type": message.event_type,
                    "content_type": message.content_type,
                    "correlation_id": message.correlation_id,
                    **{f"header:{name}": value for name, value in message.headers.items()},
                }
                given = {name: value for name, value in properties.items() if value is not None}
                client.xadd(self._stream, {**given, "body": message.body})

    async def dead(self) -> list[SourceDeadLetter]:
        found = await asyncio.to_thread(entries, self._server, f"{self._stream}.dlq")
        return [
            SourceDeadLetter(
                one.text("id") if b"id" in one.fields else None,
                one.body,
                int(one.text("pillarbox-attempts")),
                one.text("pillarbox-reason"),
            )
            for one in found
        ]

    async def restart(self) -> None:
        await asyncio.to_thread(self._server.restart)

    async def cut(self) -> None:
        await self._proxy.cut()

    async def heal(self) -> None:
        await self._proxy.heal()

    async def clean(self) -> None:
        for source in self._made:
            await source.aclose()


class TestRedisSource(SourceConformance):
    @pytest.fixture
    def server(self, request: pytest.FixtureRequest) -> RedisServer:
        restarts = "restart" in request.node.name
        server: RedisServer = request.getfixturevalue("private_redis" if restarts else "redis_server")
        return server

    @pytest.fixture
    async def harness(self, server: RedisServer) -> AsyncIterator[SourceHarness]:
        async with Proxy(server.port) as proxy:
            harness = RedisSourceHarness(server, proxy)
            yield harness
            await harness.clean()
