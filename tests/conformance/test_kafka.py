"""Kafka fulfils the contract of all transports: on a mock cluster that can be taken down, or at KAFKA_URL.

The mock keeps messages in memory, so nothing can survive its restart.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest

from pillarbox.core.transport import Address, Outgoing
from pillarbox.testing.conformance.transports import (
    Arrived,
    TransportCapabilities,
    TransportConformance,
    TransportHarness,
)
from pillarbox.transports.kafka import KafkaAddress, KafkaTransport
from tests.integration.kafka.topics import headers, new_topic, read_all, text
from tests.servers.kafka import KafkaServer

OUTAGES = ("unavailable", "reconnects", "outage", "whether_the_transport_can_send", "errors_")
"""Words in the names of tests that wait for a timeout."""


class KafkaHarness(TransportHarness):
    """Addresses are topics of several partitions; a plain consumer reads what arrived."""

    capabilities = TransportCapabilities(ordered=True, refuses=True, outages=KafkaServer.is_mock)
    secrets = ("s3cret",)

    def __init__(self, server: KafkaServer, timeout: str) -> None:
        self._server = server
        self._name = new_topic()
        self._made: set[str] = set()
        self._transport = KafkaTransport(
            server.url(),
            send_timeout=timeout,
            connect_timeout=timeout,
            client={"sasl.username": "app", "sasl.password": "s3cret"},  # unused without SASL
        )

    @property
    def transport(self) -> KafkaTransport:
        return self._transport

    def address(self, n: int = 0) -> Address:
        topic = f"{self._name}-{n}"
        if topic not in self._made:
            self._made.add(topic)
            self._server.create_topic(topic, 3)
        return KafkaTransport.to(topic=topic)

    def spoiled(self, good: Outgoing) -> Outgoing:
        return good._replace(content_type="\ud800")

    async def received(self, address: Address) -> list[Arrived]:
        assert isinstance(address, KafkaAddress)
        messages = await asyncio.to_thread(read_all, self._server.bootstrap, address.topic)
        return [
            Arrived(
                text(one, "eventId"),
                one.value() or b"",
                {name: (value or b"").decode() for name, value in headers(one)},
                text(one, "content-type"),
            )
            for one in messages
        ]

    async def cut(self) -> None:
        await asyncio.to_thread(self._server.down)

    async def heal(self) -> None:
        await asyncio.to_thread(self._server.up)


class TestKafka(TransportConformance):
    @pytest.fixture
    async def harness(
        self, kafka_server: KafkaServer, request: pytest.FixtureRequest
    ) -> AsyncIterator[TransportHarness]:
        has_outage = any(word in request.node.name for word in OUTAGES)
        harness = KafkaHarness(kafka_server, "2s" if has_outage else "30s")
        yield harness
        await harness.transport.aclose()
        kafka_server.heal()
