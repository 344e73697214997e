"""Sources of NATS, Redis and Kafka deliver CloudEvents that the official SDK has written, in both modes."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from cloudevents.core.bindings import http, kafka
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from pillarbox.core.source import Source
from pillarbox.inbox.consumed_event import ConsumedEvent, read
from pillarbox.schemes import open_source
from pillarbox.testing.conformance.sources.receive import take
from tests.integration.kafka.topics import put
from tests.integration.nats.conftest import delete_streams
from tests.integration.nats.streams import jetstream
from tests.servers.kafka import GROUP_SETTINGS, KafkaServer
from tests.servers.nats import NatsServer
from tests.servers.redis import RedisServer

WHEN = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
ATTRIBUTES = {
    "id": 'evt-ü "1%"',
    "type": "order.placed",
    "source": "/shop?a=b%20c",
    "subject": "ORDER/42 é",
    "time": WHEN,
    "correlationid": "visit 7",
    "datacontenttype": "application/json",
}
MODES = ["binary", "structured"]


def event() -> CloudEvent:
    return CloudEvent(dict(ATTRIBUTES), {"total": "12,50 €"})


def over_http(mode: str) -> http.HTTPMessage:
    """As NATS has it, too: prefix `ce-`, percent-encoded values."""
    write = http.to_binary_event if mode == "binary" else http.to_structured_event
    return write(event(), JSONFormat())


def over_kafka(mode: str) -> tuple[Mapping[str, bytes], bytes]:
    """The same with the prefix `ce_` and plain UTF-8, which fields of Redis hold as they are."""
    write = kafka.to_binary_event if mode == "binary" else kafka.to_structured_event
    message = write(event(), JSONFormat())
    return message.headers, message.value or b""


async def check(source: Source, name: str) -> None:
    """Receive the event, then once more after a retry."""
    for attempt in (1, 2):
        delivery = await take(source)
        got = read(delivery.incoming)
        check_event(got, name)
        assert got.attempt == attempt
        await (delivery.retry(delay=0, reason="not yet") if attempt == 1 else delivery.ack())
    await source.aclose()


def check_event(got: ConsumedEvent, name: str) -> None:
    assert (got.event_id, got.event_type, got.correlation_id) == ('evt-ü "1%"', "order.placed", "visit 7")
    assert (got.aggregate_type, got.aggregate_id, got.occurred_at) == ("ORDER", "42 é", WHEN)
    assert (got.payload, got.content_type) == ({"total": "12,50 €"}, "application/json")
    assert (got.cloudevent["source"], got.destination) == ("/shop?a=b%20c", name)


@pytest.fixture
def name() -> str:
    return f"test-{uuid.uuid4().hex[:12]}"


@asynccontextmanager
async def stream(server: NatsServer, name: str) -> AsyncIterator[None]:
    async with jetstream(server.url()) as streams:
        await streams.add_stream(name=name, subjects=[name])
    yield
    await delete_streams(server.url(), name)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("content_type", ["content-type", "Content-Type"])
async def test_nats(nats_server: NatsServer, name: str, mode: str, content_type: str) -> None:
    async with stream(nats_server, name):
        sent = over_http(mode)
        headers = {content_type if one == "content-type" else one: value for one, value in sent.headers.items()}
        async with jetstream(nats_server.url()) as streams:
            await streams.publish(name, sent.body, headers={**headers, "Nats-Msg-Id": "for the server alone"})
        await check(open_source(nats_server.url(), name), name)


@pytest.mark.parametrize("mode", MODES)
async def test_redis(redis_server: RedisServer, name: str, mode: str) -> None:
    headers, body = over_kafka(mode)
    fields = {f"header:{one}": value for one, value in headers.items() if one != "content-type"}
    with redis_server.client() as client:
        client.xadd(name, {**fields, "content_type": headers["content-type"], "body": body})
    await check(open_source(redis_server.url(), name, check_interval="50ms"), name)


@pytest.mark.parametrize("mode", MODES)
async def test_kafka(kafka_server: KafkaServer, name: str, mode: str) -> None:
    headers, body = over_kafka(mode)
    for topic in (name, f"{name}.billing.retry", f"{name}.billing.dlq"):
        kafka_server.create_topic(topic)
    await asyncio.to_thread(put, kafka_server.bootstrap, name, [(body, list(headers.items()))])
    await check(open_source(kafka_server.url(), name, group="billing", client=GROUP_SETTINGS), name)
