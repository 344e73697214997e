"""Exports for scripts and archives contain every field of an event."""

import base64
import json
from datetime import UTC, datetime

import pytest

from pillarbox.admin.listing import EventDetail, Failure
from pillarbox.admin.states import EventState
from pillarbox.ops import exports

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def detail(payload: bytes, content_type: str = "application/json") -> EventDetail:
    known = {"id": 7, "event_id": "e", "destination": "d", "state": EventState.PUBLISHED, "event_type": "t"}
    known |= {"payload": payload, "content_type": content_type, "headers_json": '{"h": "v"}', "schema_version": 1}
    known |= {"occurred_at": NOON, "recorded_at": NOON, "published_at": NOON, "attempts": 0, "retry_count": 0}
    return EventDetail(**(dict.fromkeys(EventDetail._fields) | known))  # type: ignore[arg-type]  # by name


def test_times_are_written_in_utc_and_headers_as_an_object() -> None:
    record = exports.event_detail(detail(b"{}"))
    assert (record["published_at"], record["dead_lettered_at"]) == ("2026-11-30T12:00:00.000000Z", None)
    assert (record["headers"], record["status"]) == ({"h": "v"}, "PUBLISHED")
    assert set(record) == set(EventDetail._fields) - {"headers_json", "id"} | {"headers", "sequence", "status"}


@pytest.mark.parametrize(
    ("kept", "reported"), [(0.012299999594688416, 0.0123), (123.45600128173828, 123.456), (0.0, 0.0), (None, None)]
)
def test_the_duration_of_a_send_has_single_precision(kept: float | None, reported: float | None) -> None:
    assert exports.event_detail(detail(b"{}")._replace(seconds=kept))["seconds"] == reported
    assert exports.failure(Failure("d", 1, True, "no", NOON, kept))["seconds"] == reported


def test_json_in_canonical_form_is_decoded() -> None:
    assert exports.payload(detail('{"n":1,"é":[true]}'.encode())) == {"payload": {"n": 1, "é": [True]}}


@pytest.mark.parametrize("raw", [b'{"n": 1}', b'{"n":1,"n":2}', b'{"n":1.0e2}'])
def test_other_json_is_decoded_and_its_bytes_are_kept(raw: bytes) -> None:
    found = exports.payload(detail(raw))
    assert set(found) == {"payload", "payload_base64"}
    assert base64.b64decode(found["payload_base64"]) == raw


@pytest.mark.parametrize("raw", [b"", b"\x00\xff", b"{", b"NaN", b'"\\ud800"', b"[" * 100_000])
def test_invalid_json_keeps_its_bytes(raw: bytes) -> None:
    found = exports.payload(detail(raw))
    assert base64.b64decode(found.pop("payload_base64")) == raw
    assert found == {}
    json.dumps(found, ensure_ascii=False).encode()


def test_payloads_of_other_types_are_not_decoded() -> None:
    assert exports.payload(detail(b"{}", "application/avro")) == {"payload_base64": "e30="}
