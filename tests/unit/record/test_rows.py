"""Events are encoded and validated before any statement is sent."""

from typing import Any, cast

import pytest

from pillarbox import Event, Outbox, RecordError
from pillarbox.record.rows import row_of


def _refused(event: Any, reason: str) -> RecordError:
    with pytest.raises(RecordError, match=reason) as caught:
        row_of(event, registry=None, max_payload=10)
    return caught.value


@pytest.mark.parametrize("payload", [b"0123456789A", {"a": "12345"}, ["ääää"]], ids=repr)
def test_a_too_large_payload_is_an_error_with_size_limit_and_setting(payload: object) -> None:
    error = _refused(Event("order.placed", payload), "has 1[1-3] bytes and max_payload allows 10")
    assert error.field == "payload"


def test_a_payload_of_exactly_the_limit_is_accepted() -> None:
    assert row_of(Event("a", b"0123456789"), registry=None, max_payload=10).payload == b"0123456789"


@pytest.mark.parametrize("event", [{"event_type": "a"}, "order.placed", None], ids=repr)
def test_objects_other_than_events_are_rejected(event: object) -> None:
    assert _refused(event, "is not an Event").field == "events"


@pytest.mark.parametrize(
    ("payload", "content_type", "expected"),
    [
        ({}, None, "application/json"),
        (b"", None, "application/octet-stream"),
        (b"", "application/avro", "application/avro"),
        ({}, "application/vnd.shop+json", "application/vnd.shop+json"),
    ],
)
def test_the_content_type_depends_on_the_payload_unless_it_is_given(
    payload: object, content_type: str | None, expected: str
) -> None:
    event = Event("a", payload, content_type=content_type)
    assert row_of(event, registry=None, max_payload=10).content_type == expected


def test_if_one_event_is_rejected_no_statement_is_sent() -> None:
    with pytest.raises(RecordError, match=r"payload\.price"):
        Outbox().record(cast(Any, object()), Event("fine", {}), Event("not fine", {"price": float("nan")}))
