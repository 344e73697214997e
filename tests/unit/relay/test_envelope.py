"""The body of a message: the recorded bytes, alone or inside a JSON envelope."""

from __future__ import annotations

import json
from base64 import b64decode
from datetime import timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.core.errors import ConfigurationError, PermanentError
from pillarbox.core.message import Message
from pillarbox.core.transport import Address
from pillarbox.relay.envelope import Body, CloudEvents, Envelope, Payload, compose
from pillarbox.relay.routing import Destination
from tests.unit.relay.messages import NOW, inserted_by_plain_sql, message


def decoded(about: Message, body: Body) -> Any:
    composed, _ = compose(about, body, now=NOW)
    return json.loads(composed)


@given(st.binary(), st.sampled_from(["application/json", "application/avro", ""]))
def test_a_payload_is_sent_as_recorded(payload: bytes, content_type: str) -> None:
    recorded = message(payload=payload, content_type=content_type)
    assert compose(recorded, Payload(), now=NOW) == (payload, content_type)


def test_an_envelope_is_compact_json_in_the_order_of_its_fields() -> None:
    composed, content_type = compose(message(), Envelope(), now=NOW)
    assert composed == (
        b'{"event_id":"evt-001","event_type":"order.placed","aggregate_type":"ORDER","aggregate_id":"42",'
        b'"payload":{"id":42}}'
    )
    assert content_type == "application/json"


def test_an_envelope_of_a_row_inserted_by_plain_sql_has_the_same_fields() -> None:
    assert decoded(inserted_by_plain_sql("order.placed", b"[1]"), Envelope()) == {
        "event_id": "evt-001",
        "event_type": "order.placed",
        "aggregate_type": None,
        "aggregate_id": None,
        "payload": [1],
    }


def test_an_aggregate_id_can_be_sent_as_a_number() -> None:
    composed, _ = compose(message(aggregate_id="5"), Envelope(numeric_id=True), now=NOW)
    assert b'"aggregate_id":5,' in composed
    long = "9" * 5000
    composed, _ = compose(message(aggregate_id=long), Envelope(numeric_id=True), now=NOW)
    assert f'"aggregate_id":{long},'.encode() in composed
    assert decoded(message(aggregate_id=None), Envelope(numeric_id=True))["aggregate_id"] is None


@pytest.mark.parametrize("wrong", ["abc", "", "007", "1.5", "1e3", "+1", " 1", "٣", "0x10", "1\n"])
def test_a_non_numeric_aggregate_id_is_a_permanent_error(wrong: str) -> None:
    with pytest.raises(PermanentError, match="is not an integer"):
        compose(message(aggregate_id=wrong), Envelope(numeric_id=True), now=NOW)


def test_constants_and_renamed_fields_are_added() -> None:
    body = Envelope(
        fields={
            "event_id": "event_id",
            "event_type": "event_type",
            "aggregate_type": "aggregate_type",
            "restaurant_id": "aggregate_id",
            "payload": "payload",
        },
        from_headers={"recipientType": "recipientType"},
        constants={"recipientType": "BROADCAST"},
        numeric_id=True,
    )
    reservation = message(event_type="RESERVATION_REQUESTED", aggregate_type="RESTAURANT", aggregate_id="5")
    expected = {
        "event_id": "evt-001",
        "event_type": "RESERVATION_REQUESTED",
        "aggregate_type": "RESTAURANT",
        "restaurant_id": 5,
        "payload": {"id": 42},
        "recipientType": "BROADCAST",
    }
    assert decoded(reservation, body) == expected
    named = reservation._replace(headers_json='{"recipientType":"OWNER"}')
    assert decoded(named, body) == expected | {"recipientType": "OWNER"}


def test_a_header_that_is_missing_is_null() -> None:
    body = Envelope(fields=["event_id"], from_headers={"tenant": "x-tenant"})
    assert decoded(message(), body) == {"event_id": "evt-001", "tenant": None}


def test_every_field_of_a_message_can_be_included() -> None:
    full = message(
        content_type="text/plain",
        payload=b"\xff",
        schema_version=3,
        correlation_id="c",
        causation_id="b",
        trace_id="t",
        occurred_at=message().occurred_at.astimezone(timezone(timedelta(hours=2))),
    )
    fields = ["key", "payload", "content_type", "schema_version", "correlation_id", "causation_id", "trace_id"]
    assert decoded(full, Envelope(fields=[*fields, "occurred_at", "recorded_at", "published_at"])) == {
        "key": "ORDER:42",
        "payload_base64": "/w==",
        "content_type": "text/plain",
        "schema_version": 3,
        "correlation_id": "c",
        "causation_id": "b",
        "trace_id": "t",
        "occurred_at": "2026-11-03T12:30:45.123456Z",
        "recorded_at": "2026-11-03T12:30:45.123456Z",
        "published_at": "2026-11-03T12:31:00.000000Z",
    }


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
spellings = st.sampled_from(
    [
        {"separators": (",", ":")},
        {"indent": 2},
        {"separators": (" , ", " :\t")},
        {"sort_keys": True, "ensure_ascii": False},
    ]
)
kinds = st.sampled_from([Envelope(), Envelope(fields={"p": "payload"}), CloudEvents(source="/shop")])


@given(json_values, spellings, kinds, st.sampled_from(["", " ", "\r\n"]))
def test_the_bytes_of_a_json_payload_appear_unchanged(
    value: object, spelling: dict[str, Any], body: Body, around: str
) -> None:
    try:
        payload = f"{around}{json.dumps(value, **spelling)}{around}".encode()
    except UnicodeEncodeError:
        return
    composed, _ = compose(message(payload=payload), body, now=NOW)
    assert b":" + payload in composed
    whole = json.loads(composed)
    assert [value] == [found for name, found in whole.items() if name in ("payload", "p", "data")]


@pytest.mark.parametrize(
    "payload", [b'{"b":1,"a":1.0,"a":2e5}', b"1" * 5000, b"-0.0", b'"\\ud800"', b"1E400", b"null", b'{"":[ ]}']
)
def test_json_that_a_decoder_would_change_stays_unchanged(payload: bytes) -> None:
    composed, _ = compose(message(payload=payload), Envelope(fields=["payload"]), now=NOW)
    assert composed == b'{"payload":' + payload + b"}"


MALFORMED = [
    *(b"", b"{", b"{}{}", b"nul", b"NaN", b"[Infinity]", b"{'a':1}", b'"\x01"', b"[1,]", b'},"event_id":"other"'),
    *(b"\xff", b"\xef\xbb\xbf{}", '{"a":1}'.encode("utf-16"), b"[" * 100_000, b'"\xed\xa0\x80"', b"01"),
]


@pytest.mark.parametrize("payload", MALFORMED, ids=lambda payload: repr(payload[:20]))
@pytest.mark.parametrize("body", [Envelope(), CloudEvents()], ids=["envelope", "cloudevents"])
def test_a_payload_with_invalid_json_is_a_permanent_error(payload: bytes, body: Body) -> None:
    with pytest.raises(PermanentError, match="evt-001 says application/json and is not JSON"):
        compose(message(payload=payload), body, now=NOW)


@given(st.binary(), st.sampled_from(["application/octet-stream", "application/avro", "text/plain; a=json", ""]))
def test_a_binary_payload_is_sent_as_base64(payload: bytes, content_type: str) -> None:
    recorded = message(payload=payload, content_type=content_type)
    whole = decoded(recorded, Envelope())
    assert "payload" not in whole
    assert b64decode(whole["payload_base64"], validate=True) == payload


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON", "application/x+json"])
def test_all_json_content_types_are_recognized(content_type: str) -> None:
    assert decoded(message(content_type=content_type), Envelope())["payload"] == {"id": 42}


def test_invalid_text_inserted_by_plain_sql_is_a_permanent_error() -> None:
    body = Envelope(from_headers={"tenant": "x-tenant"})
    assert decoded(message(headers_json='{"x-tenant":{"id":[7]}}'), body)["tenant"] == {"id": [7]}
    with pytest.raises(PermanentError, match="not valid JSON in UTF-8"):
        compose(message(headers_json='{"x-tenant":"\\ud800"}'), body, now=NOW)
    with pytest.raises(PermanentError, match="headers of evt-001 cannot be read"):
        compose(message(headers_json='{"x-tenant":' + "7" * 5000 + "}"), body, now=NOW)


def test_bodies_can_be_given_by_name() -> None:
    assert Destination(Address()).body == Payload()
    assert Destination(Address(), body="payload").body == Payload()
    assert Destination(Address(), body="envelope").body == Envelope()
    assert Destination(Address(), body="cloudevents").body == CloudEvents()
    mine = Envelope(numeric_id=True)
    assert Destination(Address(), body=mine).body is mine


@pytest.mark.parametrize("wrong", ["xml", "", "Envelope", None, {}])
def test_an_unknown_body_is_rejected(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r'^Destination\.body is .*: write "payload", "envelope" or "cloudev'):
        Destination(Address(), body=wrong)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"fields": ["id"]}, "'id' is not a field of a message"),
        ({"fields": {"event_id": "headers"}}, "'headers' is not a field of a message"),
        ({"fields": ["event_id", "event_id"]}, "named twice"),
        ({"constants": {"payload": 1}}, "'payload' is named twice"),
        ({"from_headers": {"event_id": "x"}}, "'event_id' is named twice"),
        ({"constants": {"payload_base64": 1}}, "'payload_base64' is named twice"),
        ({"fields": {"a": "payload", "a_base64": "event_id"}}, "'a_base64' is named twice"),
        ({"constants": {"when": object()}}, "its constants JSON"),
        ({"constants": {"ratio": float("nan")}}, "its constants JSON"),
        ({"constants": {"name": "\ud800"}}, "its constants JSON"),
    ],
)
def test_an_invalid_envelope_is_rejected(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        Envelope(**settings)
