"""An event as its consumer sees it, read from a message before anything else is done with that.

Whatever cannot be read will never be readable: it is a PermanentError, and the message a dead letter at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pillarbox.core.errors import PermanentError, RecordError
from pillarbox.core.event import BYTES, JSON, LONGEST_TEXT, check_text
from pillarbox.core.source import Incoming
from pillarbox.core.text import Upcast, decoded
from pillarbox.inbox.body_fields import Body, BodyFields

LONGEST_VERSION = 9
"""Digits of a schema version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumedEvent:
    """What a handler is given beside its transaction; `Event(…).caused_by(it)` is an event that follows from it."""

    event_id: str
    event_type: str
    payload: Any = field(repr=False)
    """JSON as Python values, upcast where there is an upcaster; anything else as bytes. Of a message whose id or type
    is in its body, what `BodyFields.payload` names."""
    payload_bytes: bytes = field(repr=False)
    content_type: str
    headers: Mapping[str, str] = field(repr=False)
    aggregate_type: str | None
    aggregate_id: str | None
    schema_version: int
    correlation_id: str | None
    causation_id: str | None
    trace_id: str | None
    occurred_at: datetime | None
    attempt: int
    """1 for the first try; on a source, what failed through no fault of the event does not count."""


def read(incoming: Incoming, upcast: Upcast | None = None, body_fields: BodyFields | None = None) -> ConsumedEvent:
    """Raises PermanentError for what can never be read, and whatever the upcaster raises."""
    headers, body = incoming.headers, Body(incoming.body, body_fields)
    event_id = _identified(incoming.event_id or body.text("event_id"), body)
    event_type = _typed(incoming.event_type or headers.get("eventType") or body.text("event_type"), event_id, body)
    version = _version(event_id, headers.get("schemaVersion", "1"))
    if body.was_needed:
        content_type, payload = JSON, body.payload
        if upcast is not None:
            payload = upcast(event_type, version, payload)
    else:
        content_type = incoming.content_type or BYTES
        payload = decoded(
            incoming.body, content_type, event_id=event_id, event_type=event_type, version=version, upcast=upcast
        )
    return ConsumedEvent(
        event_id=event_id,
        event_type=event_type,
        payload=payload,
        payload_bytes=incoming.body,
        content_type=content_type,
        headers=headers,
        aggregate_type=headers.get("aggregateType") or body.text("aggregate_type"),
        aggregate_id=headers.get("aggregateId") or body.text("aggregate_id"),
        schema_version=version,
        correlation_id=incoming.correlation_id or headers.get("correlationId"),
        causation_id=headers.get("causationId"),
        trace_id=headers.get("traceparent"),
        occurred_at=_moment(headers.get("occurredAt", "")),
        attempt=incoming.attempts + 1,
    )


def received(event: Any, context: Any, upcast: Upcast | None = None) -> ConsumedEvent:
    """`read` for what a relay gives to its handlers."""
    incoming = Incoming(
        event_id=event.event_id,
        event_type=event.event_type,
        body=event.payload_bytes,
        content_type=event.content_type,
        correlation_id=event.correlation_id,
        headers=event.headers,
        attempts=context.attempt - 1,
    )
    return read(incoming, upcast)


def _identified(event_id: str | None, body: Body) -> str:
    if not event_id:
        raise PermanentError(
            f"the message has no id, so nobody could tell a repeat of it: no `message_id`{body.says('event_id')}"
        )
    return _clean("the message id", event_id, "without a clean id nobody could tell a repeat of it")


def _typed(event_type: str | None, event_id: str, body: Body) -> str:
    if not event_type:
        raise PermanentError(
            f"message {event_id} does not say of which type it is: neither `type` nor the header eventType"
            f"{body.says('event_type')}"
        )
    return _clean("the event type", event_type, "correct the producer")


def _clean(name: str, text: str, otherwise: str) -> str:
    try:
        check_text(name, text, LONGEST_TEXT)
    except RecordError as error:
        raise PermanentError(f"{error}; {otherwise}") from None
    return text


def _version(event_id: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= LONGEST_VERSION):
        raise PermanentError(f"schemaVersion of message {event_id} is no whole number; correct its producer")
    return int(text)


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None  # a fact for people; no event fails for it
