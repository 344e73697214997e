"""Kafka fulfils the contract of all sources: on a mock cluster that can be taken down, or at KAFKA_URL."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from pillarbox.core.source import Incoming
from pillarbox.testing.conformance.sources import SourceCapabilities, SourceConformance, SourceDeadLetter, SourceHarness
from pillarbox.testing.conformance.sources.harness import PREFETCH
from pillarbox.transports.kafka import KafkaSource
from tests.integration.kafka.topics import headers, new_topic, put, read_all, text
from tests.servers.kafka import GROUP_SETTINGS, KafkaServer


class KafkaSourceHarness(SourceHarness):
    """A topic of one partition for one test; plain clients write to it and read its dead letters."""

    capabilities = SourceCapabilities(outages=KafkaServer.is_mock, competing=False)
    secrets = ("s3cret",)

    def __init__(self, server: KafkaServer, timeout: str) -> None:
        self._server = server
        self._timeout = timeout
        self._topic, self._group = new_topic(), new_topic()
        self._made: list[KafkaSource] = []
        for name in (self._topic, f"{self._topic}.{self._group}.retry", f"{self._topic}.{self._group}.dlq"):
            server.create_topic(name)
        self._source = self.another()

    @property
    def source(self) -> KafkaSource:
        return self._source

    @property
    def destination(self) -> str:
        return self._topic

    def another(self) -> KafkaSource:
        source = KafkaSource(
            self._server.url(),
            topic=self._topic,
            group=self._group,
            prefetch=PREFETCH,
            reply_timeout=self._timeout,
            connect_timeout=self._timeout,
            client={"sasl.username": "app", "sasl.password": "s3cret", **GROUP_SETTINGS},  # unused without SASL
        )
        self._made.append(source)
        return source

    async def put(self, *messages: Incoming) -> None:
        await asyncio.to_thread(
            put, self._server.bootstrap, self._topic, [(message.body, _headers(message)) for message in messages]
        )

    async def dead(self) -> list[SourceDeadLetter]:
        found = await asyncio.to_thread(read_all, self._server.bootstrap, self._source.dead_letter_topic)
        return [
            SourceDeadLetter(
                (dict(headers(one)).get("eventId") or b"").decode() or None,
                one.value() or b"",
                int(text(one, "pillarbox-attempts")),
                text(one, "pillarbox-reason"),
            )
            for one in found
        ]

    async def cut(self) -> None:
        await asyncio.to_thread(self._server.down)

    async def heal(self) -> None:
        await asyncio.to_thread(self._server.up)

    async def clean(self) -> None:
        self._server.heal()
        for source in self._made:
            await source.aclose()


def _headers(message: Incoming) -> list[tuple[str, bytes]]:
    properties = {
        "eventId": message.event_id,
        "eventType": message.event_type,
        "content-type": message.content_type,
        "correlationId": message.correlation_id,
        **message.headers,
    }
    return [(name, value.encode()) for name, value in properties.items() if value is not None]


class TestKafkaSource(SourceConformance):
    @pytest.fixture
    async def harness(self, kafka_server: KafkaServer, request: pytest.FixtureRequest) -> AsyncIterator[SourceHarness]:
        has_outage = any(word in request.node.name for word in ("connection", "lost_"))
        harness = KafkaSourceHarness(kafka_server, "2s" if has_outage else "30s")
        yield harness
        await harness.clean()
