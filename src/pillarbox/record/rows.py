"""Turns events into rows: validates them by their registered types, encodes them, and checks their sizes and ids."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pillarbox.core.errors import DuplicateEventError, RecordError
from pillarbox.core.event import BYTES, JSON, Event
from pillarbox.core.rows import EventRow
from pillarbox.record.encoding import encode
from pillarbox.record.registry import EventTypes
from pillarbox.record.tracing import creation_context

_headers = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def row_of(event: Event, *, registry: EventTypes | None, max_payload: int, traced: bool = True) -> EventRow:
    """The row of an event. Raises RecordError if it is invalid, cannot be encoded or is too large.

    traced: give it the trace context of the current span, unless it has its own.
    """
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
    trace_id, headers = creation_context(event) if traced else (event.trace_id, event.headers)
    return EventRow(
        event_id=event.event_id,
        destination=event.destination or (known.destination if known else ""),
        event_type=event.event_type,
        aggregate_type=event.aggregate_type,
        aggregate_id=event.aggregate_id,
        ordering_key=event.key,
        payload=payload,
        content_type=event.content_type or (BYTES if raw else JSON),
        headers=_headers(dict(headers)) if headers else "{}",
        schema_version=event.schema_version or (known.version if known else 1),
        correlation_id=event.correlation_id,
        causation_id=event.causation_id,
        trace_id=trace_id,
        occurred_at=event.occurred_at,
        available_at=event.available_at,
    )


def check_distinct(rows: Sequence[EventRow]) -> None:
    """Raise DuplicateEventError if two events of one call have the same id and destination."""
    seen: set[tuple[str, str]] = set()
    for row in rows:
        identity = row.event_id, row.destination
        if identity in seen:
            raise DuplicateEventError(
                f"event {row.event_id} occurs twice in one call, nothing was written; record it once", field="event_id"
            )
        seen.add(identity)
