"""CloudEvents 1.0, binary mode: the body is the payload, and the attributes are headers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pillarbox.core.errors import ConfigurationError, PermanentError
from pillarbox.core.message import Message
from pillarbox.core.transport import Address
from pillarbox.relay.envelope import PAYLOAD, CloudEvents, compose, headers_for, outgoing_headers
from pillarbox.transports.rabbitmq import RabbitMQTransport
from tests.unit.relay.messages import NOW, inserted_by_plain_sql, message

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
BINARY = CloudEvents(source="/shop/orders", mode="binary")
QUEUE = RabbitMQTransport.to(routing_key="orders")


def attributes(about: Message, address: Address = QUEUE) -> dict[str, str]:
    """The attributes of the CloudEvent, without the prefix of their headers."""
    prefix = type(address).cloudevents_prefix
    headers = headers_for(about, BINARY, address)
    return {name.removeprefix(prefix): value for name, value in headers.items() if name.startswith(prefix)}


def test_a_full_event_has_every_attribute_as_text() -> None:
    headers = {"replayof": "evt-000", "tracestate": "shop=7"}
    full = message(
        correlation_id="c-1",
        causation_id="evt-000",
        trace_id=TRACE,
        schema_version=2,
        headers_json=json.dumps(headers),
    )
    assert attributes(full) == {
        "specversion": "1.0",
        "id": "evt-001",
        "type": "order.placed",
        "source": "/shop/orders",
        "subject": "ORDER/42",
        "time": "2026-11-03T12:30:45.123456Z",
        "partitionkey": "ORDER:42",
        "correlationid": "c-1",
        "causationid": "evt-000",
        "schemaversion": "2",
        "replayof": "evt-000",
        "traceparent": TRACE,
        "tracestate": "shop=7",
    }


def test_a_row_inserted_by_plain_sql_has_the_required_attributes() -> None:
    assert attributes(inserted_by_plain_sql("order.placed", b"{}")) == {
        "specversion": "1.0",
        "id": "evt-001",
        "type": "order.placed",
        "source": "/shop/orders",
        "time": "2026-11-03T12:30:45.123456Z",
        "schemaversion": "1",
    }


@pytest.mark.parametrize(
    ("changes", "absent"),
    [
        ({"aggregate_id": None}, "subject"),
        ({"key": None}, "partitionkey"),
        ({"key": ""}, "partitionkey"),
        ({"correlation_id": None}, "correlationid"),
        ({"causation_id": None}, "causationid"),
        ({"headers_json": "{}"}, "replayof"),
        ({"trace_id": "trace-7"}, "traceparent"),
        ({"headers_json": "{}"}, "tracestate"),
    ],
)
def test_an_attribute_without_a_value_is_absent(changes: dict[str, Any], absent: str) -> None:
    assert absent not in attributes(message(**changes))


@pytest.mark.parametrize(
    ("payload", "content_type"),
    [
        (b'{ "id": 42.0 }', "application/json"),
        (b"\x00\xff", "application/avro"),
        (b"{", "application/json"),
        (b"", "a/b"),
    ],
)
def test_the_body_and_its_content_type_are_those_that_were_recorded(payload: bytes, content_type: str) -> None:
    recorded = message(payload=payload, content_type=content_type)
    assert compose(recorded, BINARY, now=NOW) == (payload, content_type)
    assert "datacontenttype" not in attributes(recorded)


def test_the_address_type_has_the_prefix() -> None:
    assert "cloudEvents_id" in headers_for(message(), BINARY, QUEUE)
    assert "ce-id" in headers_for(message(), BINARY, Address())
    assert attributes(message(), Address()) == attributes(message(), QUEUE)


def test_all_other_headers_are_sent_as_well() -> None:
    recorded = message(headers_json='{"tenant": "acme"}')
    headers = headers_for(recorded, BINARY, QUEUE)
    assert outgoing_headers(recorded).items() <= headers.items()
    assert headers["tenant"] == "acme"


def test_an_attribute_overrides_a_header_of_the_same_name() -> None:
    assert attributes(message(headers_json='{"cloudEvents_id": "forged"}'))["id"] == "evt-001"


@pytest.mark.parametrize("text", ["größe", "100 %", "a%20b", 'quoted "text"', "日本"])
def test_values_are_left_as_they_are_and_transports_encode_them(text: str) -> None:
    assert attributes(message(aggregate_type=None, aggregate_id=text))["subject"] == text


@pytest.mark.parametrize("body", [PAYLOAD, CloudEvents()], ids=["payload", "structured"])
def test_other_bodies_add_no_headers(body: Any) -> None:
    assert headers_for(message(), body, QUEUE) == outgoing_headers(message())


def test_headers_that_cannot_be_read_fail_the_message() -> None:
    with pytest.raises(PermanentError, match="evt-001"):
        headers_for(message(headers_json="{"), BINARY, QUEUE)


def test_an_unknown_mode_is_refused() -> None:
    wrong: Any = "batched"
    with pytest.raises(ConfigurationError, match="mode"):
        CloudEvents(mode=wrong)
