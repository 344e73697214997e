"""Reading an event from a message: all properties of the relay, and errors for unreadable messages."""

from datetime import UTC, datetime
from typing import Any

import pytest

from pillarbox import ConfigurationError, Event, PermanentError
from pillarbox.core.source import Incoming
from pillarbox.inbox import BodyFields
from pillarbox.inbox.consumed_event import read

HEADERS = {
    "eventType": "order.placed",
    "aggregateType": "ORDER",
    "aggregateId": "42",
    "schemaVersion": "3",
    "occurredAt": "2026-01-02T03:04:05.678901Z",
    "causationId": "c1",
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
}


def message(**other: object) -> Incoming:
    given: dict[str, object] = {
        "event_id": "e1",
        "event_type": "order.placed",
        "body": b'{"id":42}',
        "content_type": "application/json",
        "correlation_id": "r1",
        "headers": HEADERS,
        "attempts": 2,
    }
    return Incoming(**(given | other))  # type: ignore[arg-type] # made to be wrong by some tests


def test_every_property_of_the_relay_is_read() -> None:
    event = read(message())
    assert (event.event_id, event.event_type, event.payload, event.payload_bytes) == (
        "e1",
        "order.placed",
        {"id": 42},
        b'{"id":42}',
    )
    assert (event.aggregate_type, event.aggregate_id, event.schema_version, event.attempt) == ("ORDER", "42", 3, 3)
    assert event.occurred_at == datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    assert (event.correlation_id, event.causation_id, event.trace_id) == ("r1", "c1", HEADERS["traceparent"])


def test_a_message_of_another_producer_needs_only_id_and_type() -> None:
    event = read(Incoming(event_id="e1", event_type="t", body=b"\xff"))
    assert (event.payload, event.content_type, event.schema_version) == (b"\xff", "application/octet-stream", 1)
    assert (event.occurred_at, event.correlation_id, event.attempt) == (None, None, 1)


def test_the_type_can_be_a_header() -> None:
    assert read(message(event_type=None)).event_type == "order.placed"


def test_an_invalid_time_is_ignored() -> None:
    assert read(message(headers={"occurredAt": "yesterday"})).occurred_at is None


def test_json_is_upcast_and_bytes_are_not() -> None:
    def upcast(event_type: str, version: int, payload: object) -> object:
        return event_type, version, payload

    assert read(message(), upcast).payload == ("order.placed", 3, {"id": 42})
    assert read(message(content_type="application/x"), upcast).payload == b'{"id":42}'


def test_a_caused_event_has_its_correlation_and_causation() -> None:
    follow_up = Event("invoice.sent", {}).caused_by(read(message()))
    assert (follow_up.causation_id, follow_up.correlation_id) == ("e1", "r1")
    first = Event("invoice.sent", {}).caused_by(read(message(correlation_id=None)))
    assert first.correlation_id == "e1"


@pytest.mark.parametrize(
    "wrong",
    [
        {"event_id": None},
        {"event_id": ""},
        {"event_id": "x" * 256},
        {"event_id": "a\x00"},
        {"event_type": None, "headers": {}},
        {"headers": {"schemaVersion": "-1"}},
        {"headers": {"schemaVersion": "new"}},
        {"body": b"{"},
        {"body": b"[" * 100_000},
        {"body": b"\xff"},
    ],
    ids=lambda wrong: str(wrong)[:40],
)
def test_an_unreadable_message_is_a_permanent_error(wrong: dict[str, object]) -> None:
    with pytest.raises(PermanentError) as caught:
        read(message(**wrong))
    assert len(str(caught.value)) < 400


# -- messages without properties -------------------------------------------------------------------------------------

FIELDS = BodyFields(event_id="meta.id", event_type="kind", aggregate_type="of", aggregate_id="of_id", payload="data")
BODY = b'{"meta": {"id": "e9"}, "kind": "order.moved", "of": "ORDER", "of_id": 42, "data": {"id": 1}}'


def bare(body: bytes = BODY, **other: object) -> Incoming:
    return Incoming(**{"event_id": None, "event_type": None, "body": body} | other)  # type: ignore[arg-type] # as above


@pytest.mark.parametrize("content_type", [None, "application/json", "text/plain"])
def test_a_message_without_properties_is_read_from_its_body(content_type: str | None) -> None:
    event = read(bare(content_type=content_type), body_fields=FIELDS)
    assert (event.event_id, event.event_type, event.payload) == ("e9", "order.moved", {"id": 1})
    assert (event.aggregate_type, event.aggregate_id, event.payload_bytes) == ("ORDER", "42", BODY)


def test_properties_take_precedence_over_the_body() -> None:
    event = read(message(body=BODY), body_fields=FIELDS)
    assert (event.event_id, event.event_type, event.aggregate_id) == ("e1", "order.placed", "42")
    assert event.payload["data"] == {"id": 1}


def test_a_payload_in_the_body_is_upcast() -> None:
    event = read(bare(), lambda *given: given, FIELDS)
    assert event.payload == ("order.moved", 1, {"id": 1})


@pytest.mark.parametrize(
    ("incoming", "fields", "says"),
    [
        (bare(), None, r"no `message_id`; .* Consumer\(body_fields=BodyFields\(event_id=…\)\)"),
        (bare(event_id="e1"), None, r"neither `type` nor .*body_fields=BodyFields\(event_type=…\)"),
        (bare(b'{"kind": "t"}'), FIELDS, r"the body has no field 'meta.id' \(body_fields.event_id\)"),
        (bare(b'{"meta": {"id": ""}}'), FIELDS, "the body has no field 'meta.id'"),
        (bare(b'{"meta": "e1"}'), FIELDS, "the body has no field 'meta.id'"),
        (bare(b'["e1"]'), FIELDS, "the body is not a JSON object with the field 'meta.id'"),
        (bare(b"\xff"), FIELDS, "the body is not a JSON object with the field 'meta.id'"),
        (bare(b"[" * 100_000), FIELDS, "the body is not a JSON object with the field 'meta.id'"),
        (bare(b'{"meta": {"id": true}}'), FIELDS, "JSON type bool, not text"),
        (bare(b'{"meta": {"id": 1.5}}'), FIELDS, "JSON type float, not text"),
        (bare(b'{"meta": {"id": "a\\u0000"}}'), FIELDS, "control character"),
        (bare(b'{"meta": {"id": "\\ud800"}}'), FIELDS, "lone surrogate"),
        (bare(b'{"meta": {"id": "e1"}}'), FIELDS, "the body has no field 'kind'"),
        (bare(b'{"meta": {"id": "e1"}, "kind": "t"}'), FIELDS, "no field 'data'"),
        (bare(BODY, event_id="\udcff"), FIELDS, "lone surrogate"),
    ],
)
def test_a_missing_field_is_named_with_its_setting(incoming: Incoming, fields: BodyFields | None, says: str) -> None:
    with pytest.raises(PermanentError, match=says):
        read(incoming, body_fields=fields)


@pytest.mark.parametrize("path", ["", "a..b", ".a", 7])
def test_an_invalid_path_is_rejected(path: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"body_fields\.event_id"):
        BodyFields(event_id=path)
