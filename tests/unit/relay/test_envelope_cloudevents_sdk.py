"""CloudEvents that a relay composes, read by the official SDK over its bindings: the same event in both modes."""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings import amqp, http, kafka, rabbitmq
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.core.message import Message
from pillarbox.core.transport import Address
from pillarbox.relay.envelope import CloudEvents, compose, headers_for
from pillarbox.transports.rabbitmq import RabbitMQTransport
from tests.unit.relay.messages import NOW, message

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SOURCE = "/shop/orders"
UNESCAPED = "".join(set(string.printable) - set(string.whitespace) - set('"%'))

Read = Callable[[dict[str, str], str, bytes], BaseCloudEvent]


class KafkaLike(Address):
    """The prefix of the Kafka binding."""

    cloudevents_prefix = "ce_"


def over_amqp(headers: dict[str, str], content_type: str, body: bytes) -> BaseCloudEvent:
    return amqp.from_amqp_event(amqp.AMQPMessage({"content-type": content_type}, {**headers}, body))


def over_kafka(headers: dict[str, str], content_type: str, body: bytes) -> BaseCloudEvent:
    encoded = {name: value.encode() for name, value in {**headers, "content-type": content_type}.items()}
    return kafka.from_kafka_event(kafka.KafkaMessage(encoded, None, body))


def over_http(headers: dict[str, str], content_type: str, body: bytes) -> BaseCloudEvent:
    escaped = {name: quote(value, safe=UNESCAPED) for name, value in headers.items()}
    return http.from_http_event(http.HTTPMessage({**escaped, "content-type": content_type}, body))


def over_rabbitmq(headers: dict[str, str], content_type: str, body: bytes) -> BaseCloudEvent:
    return rabbitmq.from_rabbitmq_event(rabbitmq.RabbitMQMessage(headers, content_type, body))


BINDINGS = [
    pytest.param(RabbitMQTransport.to(routing_key="orders"), over_amqp, id="amqp"),
    pytest.param(KafkaLike(), over_kafka, id="kafka"),
    pytest.param(Address(), over_http, id="http"),
    pytest.param(Address(), over_rabbitmq, id="rabbitmq"),
]

# Some text of every kind; record rejects control characters and lone surrogates.
TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=20)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
PAYLOADS: st.SearchStrategy[tuple[str, bytes]] = st.one_of(
    JSON_VALUES.map(lambda value: ("application/json", json.dumps(value, ensure_ascii=False).encode())),
    TEXT.map(lambda text: ("text/plain; charset=utf-8", text.encode())),
    st.binary(min_size=1).map(lambda raw: ("application/avro", raw)),
)
MESSAGES = st.builds(
    lambda payload, state, **fields: message(
        content_type=payload[0],
        payload=payload[1],
        headers_json=json.dumps({"tracestate": state, "replayof": "evt-000", "tenant": "größe"}),
        trace_id=TRACE,
        **fields,
    ),
    payload=PAYLOADS,
    state=st.sampled_from(["shop=7", "a=1,b=2"]),
    event_id=TEXT,
    event_type=TEXT,
    aggregate_type=st.none() | TEXT,
    aggregate_id=st.none() | TEXT,
    key=st.none() | TEXT,
    correlation_id=st.none() | TEXT,
    causation_id=st.none() | TEXT,
    schema_version=st.integers(1, 2**31 - 1),
    occurred_at=st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)),
)


def expected(sent: Message) -> dict[str, Any]:
    subject = sent.aggregate_id and "/".join(part for part in (sent.aggregate_type, sent.aggregate_id) if part)
    attributes = {
        "specversion": "1.0",
        "id": sent.event_id,
        "type": sent.event_type,
        "source": SOURCE,
        "subject": subject,
        "time": sent.occurred_at,
        "partitionkey": sent.key,
        "correlationid": sent.correlation_id,
        "causationid": sent.causation_id,
        "schemaversion": str(sent.schema_version),
        "replayof": "evt-000",
        "traceparent": TRACE,
        "tracestate": sent.headers["tracestate"],
        "datacontenttype": sent.content_type,
    }
    return {name: value for name, value in attributes.items() if value is not None}


def assert_same(event: BaseCloudEvent, sent: Message) -> None:
    attributes = {**event.get_attributes()}
    attributes["schemaversion"] = str(attributes["schemaversion"])  # a number in JSON
    assert attributes == expected(sent)
    data = event.get_data()
    if sent.content_type == "application/json":
        assert data == json.loads(sent.payload)
    else:
        assert (data.encode() if isinstance(data, str) else data) == sent.payload


@pytest.mark.parametrize(("address", "read"), BINDINGS)
@given(sent=MESSAGES)
def test_the_sdk_reads_a_binary_event(address: Address, read: Read, sent: Message) -> None:
    body = CloudEvents(source=SOURCE, mode="binary")
    composed, content_type = compose(sent, body, now=NOW)
    assert_same(read(headers_for(sent, body, address), content_type, composed), sent)


@pytest.mark.parametrize(("address", "read"), BINDINGS)
@given(sent=MESSAGES)
def test_the_sdk_reads_a_structured_event(address: Address, read: Read, sent: Message) -> None:
    body = CloudEvents(source=SOURCE)
    composed, content_type = compose(sent, body, now=NOW)
    assert_same(read(headers_for(sent, body, address), content_type, composed), sent)
