"""A line of JSON becomes an event, or an error that names the problem."""

from datetime import UTC, datetime

import pytest

from pillarbox.core.errors import RecordError
from pillarbox.ops.ndjson import event_of


def test_every_field_of_an_event_can_be_given() -> None:
    event = event_of(
        '{"event_type": "t", "payload": {"n": 1}, "event_id": "e", "aggregate_type": "A", "aggregate_id": "1",'
        ' "key": "k", "destination": "d", "content_type": "application/json", "headers": {"h": "v"},'
        ' "schema_version": 2, "correlation_id": "c", "causation_id": "b", "trace_id": "x",'
        ' "occurred_at": "2026-11-30T12:00:00Z", "available_at": "2026-12-01T12:00:00+01:00"}'
    )
    assert (event.event_type, event.payload, event.event_id, event.key) == ("t", {"n": 1}, "e", "k")
    assert (event.headers, event.schema_version) == ({"h": "v"}, 2)
    assert event.occurred_at == datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert event.available_at == datetime(2026, 12, 1, 11, tzinfo=UTC)


def test_null_counts_as_not_given() -> None:
    assert event_of('{"event_type": "t", "payload": {}, "key": null, "headers": null}').key is None


def test_bytes_are_shown_in_base64() -> None:
    assert event_of('{"event_type": "t", "payload_base64": "AP8="}').payload == b"\x00\xff"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "the line is not JSON"),
        ("[" * 100_000, "the line is not JSON"),
        ("[]", "the line is a JSON list"),
        ('{"payload": {}}', "event_type is missing"),
        ('{"event_type": null, "payload": {}}', "event_type must be text"),
        ('{"event_type": "t"}', "payload is missing"),
        ('{"event_type": "t", "paylod": {}}', "did you mean payload"),
        ('{"event_type": "t", "payload": {}, "payload_base64": ""}', "both given"),
        ('{"event_type": "t", "payload_base64": "?"}', "payload_base64"),
        ('{"event_type": "t", "payload_base64": 7}', "payload_base64"),
        ('{"event_type": "t", "payload": {}, "occurred_at": "noon"}', "occurred_at: 'noon' is not a time"),
        ('{"event_type": "t", "payload": {}, "occurred_at": "2026-11-30T12:00:00"}', "no time zone"),
        ('{"event_type": "t", "payload": {}, "headers": {"h": 1}}', "must be text"),
    ],
)
def test_an_invalid_line_is_an_error(line: str, said: str) -> None:
    with pytest.raises(RecordError, match=said.replace("(", r"\(")):
        event_of(line)
