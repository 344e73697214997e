"""A row becomes the message that a relay fetches, for the memory store and for direct publishing."""

from datetime import UTC, datetime, timedelta

import pytest

from pillarbox.core.event import Event
from pillarbox.record.rows import row_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVENT = Event(
    "order.placed",
    {"n": 1},
    event_id="e",
    aggregate_type="order",
    aggregate_id="42",
    headers={"h": "v"},
    correlation_id="c",
    causation_id="d",
    schema_version=3,
)


def test_a_message_has_the_fields_of_its_row_and_no_attempts() -> None:
    row = row_of(EVENT, registry=None, max_payload=100)
    message = row.message(id=7, lane=5, recorded_at=NOW)
    shared = set(row._fields) & set(message._fields) - {"occurred_at"}
    assert {name: getattr(message, name) for name in shared} == {name: getattr(row, name) for name in shared}
    assert (message.id, message.lane, message.key, message.headers) == (7, 5, "order:42", {"h": "v"})
    assert (message.held, message.failures, message.must_wait) == (None, 0, False)


@pytest.mark.parametrize("occurred", [None, NOW - timedelta(days=1)])
def test_occurred_at_defaults_to_the_time_of_recording(occurred: datetime | None) -> None:
    row = row_of(EVENT, registry=None, max_payload=100)._replace(occurred_at=occurred)
    message = row.message(id=1, lane=0, recorded_at=NOW)
    assert (message.occurred_at, message.recorded_at) == (occurred or NOW, NOW)
