"""CloudEvents 1.0, structured mode: attributes without a value are omitted."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.message import Message
from pillarbox.relay.envelope import CloudEvents, compose
from tests.unit.relay.messages import NOW, inserted_by_plain_sql, message

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SHOP = CloudEvents(source="/shop/orders")


def decoded(about: Message) -> Any:
    composed, content_type = compose(about, SHOP, now=NOW)
    assert content_type == "application/cloudevents+json"
    return json.loads(composed)


def test_a_full_event_has_every_attribute() -> None:
    full = message(correlation_id="c-1", causation_id="evt-000", trace_id=TRACE, schema_version=2)
    assert decoded(full) == {
        "specversion": "1.0",
        "id": "evt-001",
        "type": "order.placed",
        "source": "/shop/orders",
        "subject": "ORDER/42",
        "time": "2026-11-03T12:30:45.123456Z",
        "partitionkey": "ORDER:42",
        "correlationid": "c-1",
        "causationid": "evt-000",
        "schemaversion": 2,
        "traceparent": TRACE,
        "datacontenttype": "application/json",
        "data": {"id": 42},
    }


def test_a_replay_names_its_original() -> None:
    assert decoded(message(headers_json='{"replayof": "evt-000"}'))["replayof"] == "evt-000"


def test_a_row_inserted_by_plain_sql_has_the_required_attributes() -> None:
    assert decoded(inserted_by_plain_sql("order.placed", b"{}")) == {
        "specversion": "1.0",
        "id": "evt-001",
        "type": "order.placed",
        "source": "/shop/orders",
        "time": "2026-11-03T12:30:45.123456Z",
        "schemaversion": 1,
        "datacontenttype": "application/json",
        "data": {},
    }


def test_the_subject_is_the_aggregate() -> None:
    assert decoded(message(aggregate_type=None))["subject"] == "42"
    assert "subject" not in decoded(message(aggregate_id=None))


def test_binary_data_is_sent_as_base64() -> None:
    event = decoded(message(payload=b"\x00\x01", content_type="application/avro"))
    assert event["data_base64"] == "AAE="
    assert event["datacontenttype"] == "application/avro"
    assert "data" not in event


def test_only_a_valid_trace_is_passed_on() -> None:
    assert "traceparent" not in decoded(message(trace_id="trace-7"))
    assert decoded(message(headers_json=json.dumps({"traceparent": TRACE})))["traceparent"] == TRACE


texts = st.none() | st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)


@given(texts, texts, texts, texts)
def test_attribute_names_follow_the_specification_and_values_are_not_empty(
    aggregate_type: str | None, aggregate_id: str | None, key: str | None, correlation_id: str | None
) -> None:
    event = decoded(
        message(
            aggregate_type=aggregate_type,
            aggregate_id=aggregate_id,
            key=key,
            correlation_id=correlation_id,
        )
    )
    for name, value in event.items():
        assert re.fullmatch("[a-z0-9]{1,20}", name)
        assert value not in (None, "")


@pytest.mark.parametrize("wrong", ["", "my shop", "/shop\n", "<shop>", "/sh{o}p", "/größe"])
def test_a_source_must_be_a_uri_reference(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match="not a URI reference"):
        CloudEvents(source=wrong)


@pytest.mark.parametrize("source", ["/shop/orders", "https://shop.example/orders?x=1#y", "urn:shop:orders", "shop"])
def test_a_uri_reference_is_accepted_as_source(source: str) -> None:
    assert CloudEvents(source=source).source == source
