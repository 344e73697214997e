"""Fixtures: transports and sources that are closed, and a cluster that is healed, when the test ends."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from pillarbox.core.transport import Outgoing
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.kafka import KafkaSource, KafkaTransport
from tests.integration.kafka.topics import new_topic
from tests.servers.kafka import PATIENT_GROUP_SETTINGS, KafkaServer

MakeTransport = Callable[..., KafkaTransport]
MakeSource = Callable[..., KafkaSource]


@pytest.fixture
def server(kafka_server: KafkaServer) -> Iterator[KafkaServer]:
    yield kafka_server
    kafka_server.heal()


@pytest.fixture
def mock(server: KafkaServer) -> KafkaServer:
    """For tests that make the cluster fail, which they cannot do to a real broker."""
    if not server.is_mock:
        pytest.skip("not supported: a real broker cannot be told to fail")
    return server


@pytest.fixture
def real(server: KafkaServer) -> KafkaServer:
    """For tests of what the mock cannot do: `make test-kafka`."""
    if server.is_mock:
        pytest.skip("not supported: the mock cluster knows no limits of topics")
    return server


@pytest.fixture
def topic(server: KafkaServer) -> str:
    """A topic of one partition."""
    name = new_topic()
    server.create_topic(name)
    return name


@pytest.fixture
async def make(server: KafkaServer) -> AsyncIterator[MakeTransport]:
    made: list[KafkaTransport] = []

    def make_one(**settings: Any) -> KafkaTransport:
        made.append(KafkaTransport(server.url(), **{"send_timeout": "10s", "connect_timeout": "5s", **settings}))
        return made[-1]

    yield make_one
    for transport in made:
        await transport.aclose()


@pytest.fixture
async def listen(server: KafkaServer) -> AsyncIterator[MakeSource]:
    made: list[KafkaSource] = []
    created: set[str] = set()

    def make_one(topic: str, group: str, **settings: Any) -> KafkaSource:
        source = KafkaSource(server.url(), topic=topic, group=group, client=PATIENT_GROUP_SETTINGS, **settings)
        for name in {source.retry_topic, source.dead_letter_topic} - created:
            created.add(name)
            server.create_topic(name)
        made.append(source)
        return source

    yield make_one
    server.heal()
    for source in made:
        await source.aclose()


def of_key(event_id: str, topic: str, key: str | None = "hot", **fields: Any) -> Outgoing:
    made = outgoing(event_id, KafkaTransport.to(topic=topic), **fields)
    return made._replace(message=made.message._replace(key=key))
