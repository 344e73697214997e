"""Reads an event from a received message: its id, its type and its payload. The message may be a CloudEvent.

A message that cannot be read raises PermanentError, so that the consumer dead-letters it at once. Producers of other
systems may put the id and the type into the body: Spring's `convertAndSend`, for example, sets no `message_id` and no
`type`. `BodyFields` names the fields. Properties and headers take precedence over fields of the body.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from types import MappingProxyType
from typing import Any, cast

from pillarbox.cloudevents import unpack
from pillarbox.core.errors import ConfigurationError, PermanentError, RecordError
from pillarbox.core.event import BYTES, JSON, MAX_SCHEMA_VERSION, MAX_TEXT_BYTES, check_text
from pillarbox.core.payload import Upcast, decoded
from pillarbox.core.source import Incoming

LONGEST_VERSION = len(str(MAX_SCHEMA_VERSION))
"""Digits of a schema version."""

_MISSING = object()
_NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumedEvent:
    """An event as a handler of a consumer receives it. `Event(…).caused_by(event)` links an event to it."""

    event_id: str
    event_type: str
    payload: Any = field(repr=False)
    """JSON as Python values, upcast if there is an upcaster; any other content type as bytes. If the id or the type of
    the message is in its body: the field that `BodyFields.payload` names. Of a CloudEvent: its data."""
    payload_bytes: bytes = field(repr=False)
    """The body of the message; of a CloudEvent: its data, as it is written."""
    content_type: str
    """That of the body; of a CloudEvent: that of its data."""
    headers: Mapping[str, str] = field(repr=False)
    aggregate_type: str | None
    aggregate_id: str | None
    schema_version: int
    correlation_id: str | None
    causation_id: str | None
    trace_id: str | None
    occurred_at: datetime | None
    attempt: int
    """The number of this attempt, from 1. Deferrals do not count on a source."""
    cloudevent: Mapping[str, str] = field(default_factory=lambda: _NO_ATTRIBUTES, repr=False)
    """The attributes if the message is a CloudEvent, such as `source`; empty if it is not."""
    messaging_system: str = ""
    """Where it was received, for spans: `rabbitmq`, `kafka`, …; '' in-process."""
    destination: str = ""
    """The queue, topic, subject or stream that it was received from; in-process the name of the destination."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyFields:
    """Paths of fields in a JSON body, with dots between the levels: `event_id`, `meta.id`. None: not in the body.

    Raises ConfigurationError for a path that is empty or not text.
    """

    event_id: str | None = None
    event_type: str | None = None
    aggregate_type: str | None = None
    aggregate_id: str | None = None
    payload: str | None = None
    """The payload of a message whose id or type is in its body; None: the whole body."""

    def __post_init__(self) -> None:
        for one in fields(self):
            path = getattr(self, one.name)
            if path is not None and not (isinstance(path, str) and all(path.split("."))):
                raise ConfigurationError(
                    f"body_fields.{one.name} is {path!r}; name a field of the body, such as event_id or meta.id"
                )


def read(
    incoming: Incoming,
    upcast: Upcast | None = None,
    body_fields: BodyFields | None = None,
    *,
    messaging_system: str = "",
) -> ConsumedEvent:
    """Read an event. Raises PermanentError for a message that cannot be read, and whatever the upcaster raises."""
    incoming, cloudevent = unpack(incoming)
    headers, body = incoming.headers, _Body(incoming.body, body_fields)
    event_id = _checked_id(incoming.event_id or body.text("event_id"), body)
    event_type = _checked_type(
        incoming.event_type or headers.get("eventType") or body.text("event_type"), event_id, body
    )
    version = _schema_version(event_id, headers.get("schemaVersion", "1"))
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
        occurred_at=_time(headers.get("occurredAt", "")),
        attempt=incoming.attempts + 1,
        cloudevent=cloudevent,
        messaging_system=messaging_system,
        destination=incoming.destination,
    )


def read_received(event: Any, context: Any, upcast: Upcast | None = None) -> ConsumedEvent:
    """Read an event that a relay passes to its handlers in-process. Raises what `read` raises."""
    incoming = Incoming(
        event_id=event.event_id,
        event_type=event.event_type,
        body=event.payload_bytes,
        content_type=event.content_type,
        correlation_id=event.correlation_id,
        headers=event.headers,
        attempts=context.attempt - 1,
        destination=context.destination,
    )
    return read(incoming, upcast)


def _checked_id(event_id: str | None, body: _Body) -> str:
    if not event_id:
        raise PermanentError(
            f"the message has no id, so duplicates cannot be detected: no `message_id`{body.missing('event_id')}"
        )
    return _checked_text("the message id", event_id, "duplicates cannot be detected without a valid id")


def _checked_type(event_type: str | None, event_id: str, body: _Body) -> str:
    if not event_type:
        raise PermanentError(
            f"message {event_id} has no event type: neither `type` nor the header eventType{body.missing('event_type')}"
        )
    return _checked_text("the event type", event_type, "correct the producer")


def _checked_text(name: str, text: str, consequence: str) -> str:
    try:
        check_text(name, text, MAX_TEXT_BYTES)
    except RecordError as error:
        raise PermanentError(f"{error}; {consequence}") from None
    return text


def _schema_version(event_id: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= LONGEST_VERSION):
        raise PermanentError(
            f"schemaVersion of message {event_id} is {text[:80]!r}, not a whole number; correct the producer"
        )
    return int(text)


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None  # nothing depends on it, so an event with a malformed time is processed


class _Body:
    """A body, decoded when the properties of the message lack a field that `BodyFields` names."""

    def __init__(self, raw: bytes, paths: BodyFields | None) -> None:
        self._raw = raw
        self._paths = paths or BodyFields()
        self._decoded: object = _MISSING
        self.was_needed = False
        """Whether the id or the type was read from it: then it is JSON, whatever its content type."""

    def text(self, name: str) -> str | None:
        """A field as text; None without a path or a value.

        Raises PermanentError for a value that is neither text nor a whole number.
        """
        path = self._path(name)
        value = None if path is None else self._at(path)
        if value is None or value == "":
            return None
        self.was_needed |= name in ("event_id", "event_type")
        if isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        raise PermanentError(
            f"the field {path!r} of the body is of JSON type {type(value).__name__}, not text; correct the producer"
        )

    @property
    def payload(self) -> Any:
        """The field that is the payload, or the whole body. Raises PermanentError if the field is missing."""
        if (path := self._paths.payload) is None:
            return self._object()
        if (found := self._at(path)) is None:
            raise PermanentError(f"the body has no field {path!r} (body_fields.payload); correct the producer")
        return found

    def missing(self, name: str) -> str:
        """The end of an error's text: why the body did not give the field either, and what to do."""
        if (path := self._path(name)) is None:
            return f"; if the body contains it, name the field: Consumer(body_fields=BodyFields({name}=…))"
        if not isinstance(self._object(), dict):
            return f", and the body is not a JSON object with the field {path!r} (body_fields.{name})"
        return f", and the body has no field {path!r} (body_fields.{name})"

    def _path(self, name: str) -> str | None:
        path: str | None = getattr(self._paths, name)
        return path

    def _at(self, path: str) -> Any:
        found: Any = self._object()
        for step in path.split("."):
            if not isinstance(found, dict):
                return None
            found = cast("dict[str, Any]", found).get(step)
        return found

    def _object(self) -> object:
        if self._decoded is _MISSING:
            try:
                self._decoded = json.loads(self._raw)
            except (ValueError, RecursionError):
                self._decoded = None
        return self._decoded
