"""Messages as a store returns them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pillarbox.core.message import Message

OCCURRED = datetime(2026, 11, 3, 12, 30, 45, 123456, tzinfo=UTC)
NOW = datetime(2026, 11, 3, 12, 31, tzinfo=UTC)

_PLAIN = Message(
    id=1,
    lane=0,
    event_id="evt-001",
    destination="",
    event_type="order.placed",
    aggregate_type="ORDER",
    aggregate_id="42",
    key="ORDER:42",
    payload=b'{"id":42}',
    content_type="application/json",
    headers_json="{}",
    schema_version=1,
    correlation_id=None,
    causation_id=None,
    trace_id=None,
    occurred_at=OCCURRED,
    recorded_at=OCCURRED,
    available_at=None,
    held=None,
    attempts=0,
    deferrals=0,
    must_wait=False,
)


def message(**changes: Any) -> Message:
    """An order placed, but for `changes`."""
    return _PLAIN._replace(**changes)


def inserted_by_plain_sql(event_type: str, payload: bytes) -> Message:
    """A message of a row with nothing but a type and a payload."""
    return message(event_type=event_type, payload=payload, aggregate_type=None, aggregate_id=None, key=None)


class Fixed:
    """A random source that always returns the same number."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self) -> float:
        return self.number
