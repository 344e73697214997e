"""Turns an event into its row: validates it by its registered type, encodes it and checks its size."""

from __future__ import annotations

import json

from pillarbox.core.errors import RecordError
from pillarbox.core.event import BYTES, JSON, Event
from pillarbox.core.row import Row
from pillarbox.record.encoding import encode
from pillarbox.record.registry import EventTypes
from pillarbox.record.tracing import trace_of

_headers = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def row_of(event: Event, *, registry: EventTypes | None, max_payload: int) -> Row:
    """The row of an event. Raises RecordError if it is invalid, cannot be encoded or is too large."""
    if not isinstance(event, Event):  # pyright: ignore[reportUnnecessaryIsInstance] # not every caller has a type checker
        raise RecordError(f'{type(event).__name__} is not an Event; pass Event("order.placed", {{…}})', field="events")
    known = registry.find(event.event_type) if registry is not None else None
    if known is not None:
        known.validate(event.payload)
    payload = encode(event.payload)
    if len(payload) > max_payload:
        raise RecordError(
            f"payload of {event.event_type} has {len(payload)} bytes and max_payload allows {max_payload}; "
            "store the data elsewhere and send a reference, or raise max_payload",
            field="payload",
        )
    raw = isinstance(event.payload, (bytes, bytearray, memoryview))
    return Row(
        event_id=event.event_id,
        destination=event.destination or (known.destination if known else ""),
        event_type=event.event_type,
        aggregate_type=event.aggregate_type,
        aggregate_id=event.aggregate_id,
        ordering_key=event.key,
        payload=payload,
        content_type=event.content_type or (BYTES if raw else JSON),
        headers=_headers(dict(event.headers)) if event.headers else "{}",
        schema_version=event.schema_version or (known.version if known else 1),
        correlation_id=event.correlation_id,
        causation_id=event.causation_id,
        trace_id=trace_of(event),
        occurred_at=event.occurred_at,
        available_at=event.available_at,
    )
