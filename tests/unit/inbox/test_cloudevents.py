"""A consumer reads CloudEvents of any producer: what the official SDK writes, and what other producers get wrong."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pytest
from cloudevents.core.bindings import amqp, http, kafka, rabbitmq
from cloudevents.core.v1.event import CloudEvent
from hypothesis import assume, given
from hypothesis import strategies as st

from pillarbox.core.errors import PermanentError
from pillarbox.core.source import Incoming
from pillarbox.core.transport import Address
from pillarbox.inbox.consumed_event import read
from pillarbox.relay.envelope import CloudEvents, compose, headers_for
from tests.unit.relay.messages import NOW
from tests.unit.relay.messages import message as recorded
from tests.unit.relay.test_envelope_cloudevents_sdk import JSON_VALUES, MESSAGES, TEXT

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
STRUCTURED = "application/cloudevents+json"
NO_ID: dict[str, Any] = {"event_id": None, "event_type": None}


def from_amqp(message: amqp.AMQPMessage) -> Incoming:
    headers = {name: str(value) for name, value in message.application_properties.items()}
    content_type = message.properties.get("content-type")
    return Incoming(**NO_ID, body=message.application_data, content_type=content_type, headers=headers)


def from_kafka(message: kafka.KafkaMessage) -> Incoming:
    headers = {name: value.decode() for name, value in message.headers.items()}
    content_type = headers.pop("content-type", None)
    return Incoming(**NO_ID, body=message.value or b"", content_type=content_type, headers=headers)


def from_http(message: http.HTTPMessage) -> Incoming:
    headers = {name.title(): unquote(value) for name, value in message.headers.items()}
    content_type = headers.pop("Content-Type", None)
    return Incoming(**NO_ID, body=message.body, content_type=content_type, headers=headers)


def from_rabbitmq(message: rabbitmq.RabbitMQMessage) -> Incoming:
    return Incoming(**NO_ID, body=message.body, content_type=message.content_type, headers=message.headers)


Write = Callable[[CloudEvent], Incoming]
WRITERS: dict[str, Write] = {
    "amqp binary": lambda event: from_amqp(amqp.to_binary_event(event)),
    "amqp structured": lambda event: from_amqp(amqp.to_structured_event(event)),
    "kafka binary": lambda event: from_kafka(kafka.to_binary_event(event)),
    "kafka structured": lambda event: from_kafka(kafka.to_structured_event(event)),
    "http binary": lambda event: from_http(http.to_binary_event(event)),
    "http structured": lambda event: from_http(http.to_structured_event(event)),
    "rabbitmq binary": lambda event: from_rabbitmq(rabbitmq.to_binary_event(event)),
    "rabbitmq structured": lambda event: from_rabbitmq(rabbitmq.to_structured_event(event)),
}
EVENTS = st.fixed_dictionaries(
    {
        "id": TEXT,
        "type": TEXT,
        "source": st.sampled_from(["/shop", "urn:uuid:6e8bc430", "https://example.com/a?b=c"]),
        "time": st.datetimes(datetime(1971, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC)).map(
            lambda moment: moment - timedelta(microseconds=moment.microsecond % 1000)
        ),
    },
    optional={"subject": TEXT, "dataschema": st.just("https://example.com/schema"), "comexampleextension": TEXT},
)
DATA = st.one_of(
    st.tuples(st.just("application/json"), st.dictionaries(TEXT, JSON_VALUES, min_size=1, max_size=3)),
    st.tuples(st.just("text/plain"), TEXT),
    st.tuples(st.just("application/avro"), st.binary(min_size=1)),
)


@pytest.mark.parametrize("binding", WRITERS)
@given(attributes=EVENTS, content=DATA)
def test_an_event_that_the_sdk_writes_is_read(
    binding: str, attributes: dict[str, Any], content: tuple[str, Any]
) -> None:
    content_type, data = content
    event = read(WRITERS[binding](CloudEvent({**attributes, "datacontenttype": content_type}, data)))
    assert (event.event_id, event.event_type) == (attributes["id"], attributes["type"])
    # The SDK computes the milliseconds of AMQP with a float, which may be one too low.
    rounding = timedelta(milliseconds=1 if binding == "amqp binary" else 0)
    assert event.occurred_at is not None
    assert timedelta() <= attributes["time"] - event.occurred_at <= rounding
    assert event.content_type == content_type
    assert event.payload == (data.encode() if isinstance(data, str) else data)
    assert event.cloudevent["source"] == attributes["source"]
    assert event.cloudevent.get("comexampleextension") == attributes.get("comexampleextension")
    subject = [part for part in (event.aggregate_type, event.aggregate_id) if part is not None]
    assert "/".join(subject) == attributes.get("subject", "")


@pytest.mark.parametrize("mode", ["structured", "binary"])
@given(sent=MESSAGES)
def test_an_event_of_a_relay_is_the_same_in_every_mode(mode: Any, sent: Any) -> None:
    """Read from the CloudEvent alone, as if a third party had passed on nothing else."""
    assume(sent.aggregate_type is None or "/" not in sent.aggregate_type)
    assume(sent.aggregate_type is not None or "/" not in (sent.aggregate_id or ""))
    body = CloudEvents(source="/shop", mode=mode)
    composed, content_type = compose(sent, body, now=NOW)
    headers = {name: value for name, value in headers_for(sent, body, Address()).items() if name.startswith("ce-")}
    event = read(Incoming(**NO_ID, body=composed, content_type=content_type, headers=headers))
    assert (event.event_id, event.event_type, event.content_type) == (
        sent.event_id,
        sent.event_type,
        sent.content_type,
    )
    assert event.payload_bytes == sent.payload
    assert (event.aggregate_id, event.schema_version) == (sent.aggregate_id, sent.schema_version)
    assert event.aggregate_type == (sent.aggregate_type if sent.aggregate_id else None)
    assert (event.correlation_id, event.causation_id) == (sent.correlation_id, sent.causation_id)
    assert (event.occurred_at, event.trace_id) == (sent.occurred_at, sent.trace_id)
    assert event.headers["tracestate"] == sent.headers["tracestate"]


def structured(**members: Any) -> Incoming:
    event = {"specversion": "1.0", "id": "e1", "source": "/s", "type": "t", **members}
    return Incoming(**NO_ID, body=json.dumps(event).encode(), content_type=f"{STRUCTURED}; charset=UTF-8")


def binary(body: bytes = b"{}", **attributes: str) -> Incoming:
    event = {"specversion": "1.0", "id": "e1", "source": "/s", "type": "t", **attributes}
    headers = {f"cloudEvents:{name}": value for name, value in event.items()}
    return Incoming(**NO_ID, body=body, content_type="application/json", headers=headers)


def test_properties_and_headers_take_precedence() -> None:
    headers = {"aggregateId": "7", "schemaVersion": "2", "occurredAt": "2026-01-02T03:04:05Z", "traceparent": TRACE}
    given_event = structured(subject="ORDER/42", schemaversion=9, correlationid="c", tracestate="a=1", data={})
    event = read(
        Incoming(
            event_id="message id",
            event_type="message type",
            correlation_id="message correlation",
            body=given_event.body,
            content_type=given_event.content_type,
            headers=headers,
        )
    )
    assert (event.event_id, event.event_type, event.correlation_id) == (
        "message id",
        "message type",
        "message correlation",
    )
    assert (event.aggregate_type, event.aggregate_id, event.schema_version) == (None, "7", 2)
    assert event.occurred_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert event.headers == headers
    assert event.cloudevent["id"] == "e1"


@pytest.mark.parametrize(
    ("members", "payload"),
    [
        ({"data": None}, None),
        ({}, None),
        ({"data": "text"}, "text"),
        ({"data": [1, {"a": "ü"}]}, [1, {"a": "ü"}]),
        ({"data": "<a/>", "datacontenttype": "application/xml"}, b"<a/>"),
        ({"data_base64": b64encode(b"\x00\xff").decode()}, b"\x00\xff"),
        ({"data_base64": b64encode(b"[1]").decode(), "datacontenttype": "application/json"}, [1]),
        ({"data_base64": None, "data": 1}, 1),
    ],
)
def test_the_payload_is_the_data(members: dict[str, Any], payload: Any) -> None:
    assert read(structured(**members)).payload == payload


def test_json_data_is_cut_out_as_it_is_written() -> None:
    data = b'{ "total" : 1.10, "big": 123456789012345678901234567890 }'
    body = b' {"specversion":"1.0","id":"e1", "data" : ' + data + b' ,"source":"/s","type":"t"}\n'
    event = read(Incoming(**NO_ID, body=body, content_type=STRUCTURED))
    assert event.payload_bytes == data
    assert event.payload["big"] == 123456789012345678901234567890


def test_a_binary_event_may_have_no_data() -> None:
    assert read(binary(b"")).payload is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"{}",
        b"\xff",
        b'{"specversion":"1.0","id":"e1","source":"/s","type":"t"} {}',
        b'{"specversion":"0.3","id":"e1","source":"/s","type":"t"}',
        b'{"specversion":1,"id":"e1","source":"/s","type":"t"}',
        b'{"specversion":"1.0","id":"e1","source":"/s","type":"t",}',
        b'{"specversion":"1.0" "id":"e1"}',
        b'{"specversion":"1.0",1:2}',
        b'{"specversion":"1.0","id":"e1","source":"/s","type":"t","data":NaN}',
        b'{"specversion":"1.0","id":"e1","source":"/s","type":"t","data":1,"data_base64":"AA=="}',
        b'{"specversion":"1.0","id":"e1","source":"/s","type":"t","data_base64":"not base64"}',
        b'{"specversion":"1.0","id":"e1","source":"/s","type":"t","data_base64":1}',
        b'{"specversion":"1.0","source":"/s","type":"t"}',
        b'{"specversion":"1.0","source":"/s","id":"e1"}',
        b'{"specversion":"1.0","source":"/s","id":"e1","type":"t","data":' + b"[" * 100_000 + b"}",
    ],
)
def test_a_structured_event_that_cannot_be_read_is_a_permanent_error(body: bytes) -> None:
    with pytest.raises(PermanentError):
        read(Incoming(**NO_ID, body=body, content_type=STRUCTURED))


@given(st.binary() | TEXT.map(str.encode) | JSON_VALUES.map(lambda value: json.dumps(value).encode()))
def test_no_body_raises_anything_but_a_permanent_error(body: bytes) -> None:
    with pytest.raises(PermanentError):
        read(Incoming(**NO_ID, body=body, content_type=STRUCTURED))


@pytest.mark.parametrize(
    ("time", "occurred_at"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("1767323045678", datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)),
        ("-1", datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        ("9" * 30, None),
        ("9" * 5000, None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_a_time_is_text_or_milliseconds(time: str, occurred_at: datetime | None) -> None:
    assert read(binary(time=time)).occurred_at == occurred_at


@pytest.mark.parametrize(
    ("subject", "aggregate"),
    [
        ("ORDER/42", ("ORDER", "42")),
        ("42", (None, "42")),
        ("/42", (None, "/42")),
        ("ORDER/", (None, "ORDER/")),
        ("a/b/c", ("a", "b/c")),
    ],
)
def test_the_subject_is_the_aggregate(subject: str, aggregate: tuple[str | None, str]) -> None:
    event = read(binary(subject=subject))
    assert (event.aggregate_type, event.aggregate_id) == aggregate


def test_a_schema_version_that_is_no_number_is_left_to_the_handler() -> None:
    event = read(binary(schemaversion="v2"))
    assert (event.schema_version, event.cloudevent["schemaversion"]) == (1, "v2")


def test_values_that_are_no_attributes_are_left_out() -> None:
    event = read(structured(flag=True, number=7, nothing=None, nested={"a": 1}, share=0.5, data={}))
    extensions = {name: event.cloudevent.get(name) for name in ("flag", "number", "nothing", "nested", "share")}
    assert extensions == {"flag": "true", "number": "7", "nothing": None, "nested": None, "share": None}


@pytest.mark.parametrize(
    ("content_type", "headers"),
    [
        ("application/json", {}),
        ("application/cloudevents-batch+json", {}),
        ("application/json", {"ce-id": "forged", "ce-type": "forged"}),
        ("application/json", {"ce-specversion": "0.3", "ce-id": "forged"}),
    ],
)
def test_other_messages_stay_as_they_are(content_type: str, headers: dict[str, str]) -> None:
    body = structured(data={"a": 1}).body
    event = read(
        Incoming(event_id="m1", event_type="order.placed", body=body, content_type=content_type, headers=headers)
    )
    assert (event.event_id, event.payload, event.cloudevent) == ("m1", json.loads(body), {})
    assert event.headers == headers


def test_the_trace_context_of_an_event_is_used_where_the_message_has_none() -> None:
    event = read(structured(traceparent=TRACE, tracestate="shop=7", data={}))
    assert (event.trace_id, event.headers["tracestate"]) == (TRACE, "shop=7")


def test_an_upcaster_receives_the_data() -> None:
    given_event = structured(schemaversion=2, data={"a": 1})
    event = read(given_event, lambda kind, version, payload: (kind, version, payload))
    assert event.payload == ("t", 2, {"a": 1})


def test_a_relays_own_cloudevent_has_its_data_as_payload() -> None:
    sent = recorded()
    body, content_type = compose(sent, CloudEvents(), now=NOW)
    event = read(Incoming(event_id=sent.event_id, event_type=sent.event_type, body=body, content_type=content_type))
    assert event.payload == {"id": 42}
