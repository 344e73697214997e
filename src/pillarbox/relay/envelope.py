"""What is on the wire: the recorded bytes, or JSON composed around them.

A JSON payload is spliced in byte for byte, never decoded and written anew: its digits, its spaces and the order of its
keys are the producer's. What can never be composed is a PermanentError; nothing else leaves this module.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from pillarbox.core.clock import timestamp
from pillarbox.core.errors import ConfigurationError, PermanentError
from pillarbox.core.event import JSON, REPLAY_OF, TRACEPARENT, TRACESTATE, is_traceparent, is_tracestate
from pillarbox.core.lane import Epochs
from pillarbox.core.message import Message
from pillarbox.core.payload import is_json, refuse_constant
from pillarbox.core.transport import Address, Outgoing, SendResult, outgoing_of
from pillarbox.settings import Choice, Flag, Pairs, Text, about, check_settings, setting

if TYPE_CHECKING:
    from pillarbox.relay.destination_state import DestinationState
    from pillarbox.relay.in_flight import Item

CLOUDEVENTS = "application/cloudevents+json"

_FIELDS = (
    "event_id",
    "event_type",
    "aggregate_type",
    "aggregate_id",
    "key",
    "payload",
    "content_type",
    "schema_version",
    "correlation_id",
    "causation_id",
    "trace_id",
    "occurred_at",
    "recorded_at",
    "published_at",
)

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_WHOLE_NUMBER = re.compile("-?(?:0|[1-9][0-9]*)")

CloudEventsMode = Literal["structured", "binary"]

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class Payload:
    """The recorded bytes under the recorded content type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A JSON object around the payload, the same for every event, also for rows inserted by plain SQL.

    Raises ConfigurationError for a field that no message has, a name used twice, or a constant that is not JSON.
    """

    fields: Mapping[str, str] | Sequence[str] = setting(
        ("event_id", "event_type", "aggregate_type", "aggregate_id", "payload"),
        Pairs(or_names=True),
        "Fields of the event, or name in the body = field.",
    )
    """Fields of the message, in order; as a mapping: name in the body → field, as in {"order_id": "aggregate_id"}.
    A payload that is not JSON goes as base64 under its name and `_base64`. What a message does not have is null."""
    from_headers: Mapping[str, str] = field(
        default_factory=lambda: _NOTHING, metadata=about(Pairs(), "Name in the body = header with the value.")
    )
    """Name in the body → header it is taken from. Without that header: the constant of the same name, else null."""
    constants: Mapping[str, Any] = field(
        default_factory=lambda: _NOTHING, metadata=about(Pairs(texts=False), "Name in the body = value.")
    )
    """Name in the body → value."""
    numeric_id: bool = setting(False, Flag(), "Send the aggregate id as a JSON number.")
    """The aggregate id as a JSON number; an id that is not an integer cannot be sent."""

    def __post_init__(self) -> None:
        sources = self.sources
        for source in sources.values():
            if source not in _FIELDS:
                raise ConfigurationError(f"envelope: {source!r} is not a field of a message; use {', '.join(_FIELDS)}")
        if len(sources) < len(self.fields):
            raise ConfigurationError(f"envelope: a field is named twice in {', '.join(self.fields)}")
        taken = [*sources, *(f"{name}_base64" for name, source in sources.items() if source == "payload")]
        others = {**self.from_headers, **self.constants}
        if twice := sorted(others.keys() & set(taken)) or sorted(name for name in taken if taken.count(name) > 1):
            raise ConfigurationError(f"envelope: {twice[0]!r} is named twice; give one of them another name")
        try:
            _json([*taken, dict(others)]).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigurationError(f"envelope: its names must be text and its constants JSON: {error}") from None
        object.__setattr__(self, "fields", MappingProxyType(dict(sources)))
        object.__setattr__(self, "from_headers", MappingProxyType(dict(self.from_headers)))
        object.__setattr__(self, "constants", MappingProxyType(dict(self.constants)))

    @property
    def sources(self) -> Mapping[str, str]:
        """Name in the body → field of the message."""
        return self.fields if isinstance(self.fields, Mapping) else {name: name for name in self.fields}


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudEvents:
    """A CloudEvent 1.0. Raises ConfigurationError for a source that is not a URI reference."""

    source: str = setting("pillarbox", Text(), "The source, a URI reference.")
    """The producer: a URI reference such as `/shop/orders`. It and the event id together name the event."""
    mode: CloudEventsMode = setting(
        "structured",
        Choice.of(CloudEventsMode),
        "`structured`: the event is one JSON object. `binary`: the body is the payload, the attributes are headers.",
    )
    """What CloudEvents call the content mode."""

    def __post_init__(self) -> None:
        check_settings(self)
        if not re.fullmatch(r"[!-~]+", self.source) or re.search(r'[<>"{}|\\^`]', self.source):
            raise ConfigurationError(
                f"cloudevents: source {self.source!r} is not a URI reference; write for example /shop/orders"
            )


Body = Payload | Envelope | CloudEvents
BodyName = Literal["payload", "envelope", "cloudevents"]

PAYLOAD = Payload()

_WRITTEN: Mapping[BodyName, Callable[[], Body]] = {
    "payload": Payload,
    "envelope": Envelope,
    "cloudevents": CloudEvents,
}


def body_of(body: Body | BodyName) -> Body:
    """`body`, or the one of that name."""
    return body if isinstance(body, Body) else _WRITTEN[body]()


def compose(message: Message, body: Body, *, now: datetime) -> tuple[bytes, str]:
    """The bytes of `message` and their content type. Raises PermanentError for what can never be composed."""
    match body:
        case Payload():
            return message.payload, message.content_type
        case Envelope():
            return _object(_envelope(message, body, now)), JSON
        case CloudEvents(mode="binary"):
            return message.payload, message.content_type
        case CloudEvents():
            return _object(_cloudevent(message, body)), CLOUDEVENTS


def headers_for(message: Message, body: Body, address: Address) -> dict[str, str]:
    """The headers of `message` at an address. Raises PermanentError where they cannot be read or written."""
    headers = outgoing_headers(message)
    if isinstance(body, CloudEvents) and body.mode == "binary":
        for name, value in _attributes(message, body, headers).items():
            text = timestamp(value) if isinstance(value, datetime) else str(value)
            headers[f"{address.cloudevents_prefix}{name}"] = text
    return headers


def prepare(
    batch: Iterable[tuple[DestinationState, Item]], epochs: Epochs, now: datetime
) -> tuple[dict[int, Outgoing], dict[int, SendResult]]:
    """What a transport gets of a batch, and the errors of what can never be composed, both by position."""
    prepared: dict[int, Outgoing] = {}
    refused: dict[int, SendResult] = {}
    for position, (state, item) in enumerate(batch):
        message, destination = item.message, state.endpoint.destination
        try:
            body, content_type = compose(message, destination.body, now=now)
            headers = headers_for(message, destination.body, destination.address)
        except PermanentError as error:
            refused[position] = error
            continue
        epoch = epochs.get(message.lane, 0)
        prepared[position] = outgoing_of(
            (message, destination.address, body, content_type, headers, item.attempt, epoch)
        )
    return prepared, refused


def outgoing_headers(message: Message) -> dict[str, str]:
    """The producer's headers and the facts of the message, which override headers of the same name.

    A `traceparent` is sent only if it is valid, a `tracestate` only with a `traceparent` and if it is valid itself.
    Raises PermanentError if the headers cannot be read or written.
    """
    # Written out one by one: this runs for every message, and is the most expensive step.
    headers = {
        "eventType": message.event_type,
        "occurredAt": timestamp(message.occurred_at),
        "schemaVersion": str(message.schema_version),
    }
    traces: tuple[str | None, ...] = (message.trace_id,)
    state: str | None = None
    if message.headers_json != "{}":
        given = {
            name: value if isinstance(value, str) else _encoded(message, value).decode()
            for name, value in _headers(message).items()
        }
        traces = (given.pop(TRACEPARENT, None), message.trace_id)
        state = given.pop(TRACESTATE, None)
        headers = given | headers
    if message.aggregate_type is not None:
        headers["aggregateType"] = message.aggregate_type
    if message.aggregate_id is not None:
        headers["aggregateId"] = message.aggregate_id
    if message.correlation_id is not None:
        headers["correlationId"] = message.correlation_id
    if message.causation_id is not None:
        headers["causationId"] = message.causation_id
    for trace in traces:
        if trace is not None and is_traceparent(trace):
            headers[TRACEPARENT] = trace
            if state is not None and is_tracestate(state):
                headers[TRACESTATE] = state
            break
    return headers


def _envelope(message: Message, body: Envelope, now: datetime) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    for name, source in body.sources.items():
        if source == "payload":
            members |= _payload(message, name, f"{name}_base64")
        elif source == "aggregate_id" and body.numeric_id:
            members[name] = _number(message)
        else:
            members[name] = _encoded(message, now if source == "published_at" else getattr(message, source))
    headers = _headers(message) if body.from_headers else _NOTHING
    named = {name: headers[header] for name, header in body.from_headers.items() if header in headers}
    others = {**dict.fromkeys(body.from_headers), **body.constants, **named}
    return members | {name: _encoded(message, value) for name, value in others.items()}


def _cloudevent(message: Message, body: CloudEvents) -> dict[str, bytes]:
    attributes = _attributes(message, body, outgoing_headers(message)) | {"datacontenttype": message.content_type}
    encoded = {name: _encoded(message, value) for name, value in attributes.items()}
    return encoded | _payload(message, "data", "data_base64")


def _attributes(message: Message, body: CloudEvents, headers: Mapping[str, str]) -> dict[str, Any]:
    """The attributes of the CloudEvent but its content type. Each has a value or is absent."""
    about = (message.aggregate_type, message.aggregate_id)
    attributes = {
        "specversion": "1.0",
        "id": message.event_id,
        "type": message.event_type,
        "source": body.source,
        "subject": "/".join(part for part in about if part) if message.aggregate_id else None,
        "time": message.occurred_at,
        "partitionkey": message.key,
        "correlationid": message.correlation_id,
        "causationid": message.causation_id,
        "schemaversion": message.schema_version,
        "replayof": headers.get(REPLAY_OF),
        TRACEPARENT: headers.get(TRACEPARENT),
        TRACESTATE: headers.get(TRACESTATE),
    }
    return {name: value for name, value in attributes.items() if value not in (None, "")}


def _payload(message: Message, plain: str, base64: str) -> dict[str, bytes]:
    if not is_json(message.content_type):
        return {base64: b'"' + b64encode(message.payload) + b'"'}
    try:
        _parse(message.payload.decode())
    except (ValueError, RecursionError) as error:
        raise PermanentError(
            f"the payload of {message.event_id} says {message.content_type} and is not JSON: {error}; "
            "record it under its true content type, or send it to a destination with body = payload"
        ) from None
    return {plain: message.payload}


def _number(message: Message) -> bytes:
    if message.aggregate_id is None:
        return b"null"
    if not _WHOLE_NUMBER.fullmatch(message.aggregate_id):
        raise PermanentError(
            f"the aggregate id {message.aggregate_id!r} of {message.event_id} is not an integer, and its destination "
            "requires one; remove numeric_id from the envelope or fix the producer, then retry it"
        )
    return message.aggregate_id.encode()


def _headers(message: Message) -> Mapping[str, Any]:
    if message.headers_json == "{}":
        return _NOTHING
    try:
        return message.headers
    except (ValueError, RecursionError) as error:
        raise PermanentError(f"the headers of {message.event_id} cannot be read: {error}") from None


def _encoded(message: Message, value: Any) -> bytes:
    try:
        return _json(timestamp(value) if isinstance(value, datetime) else value).encode()
    except (ValueError, RecursionError) as error:  # a lone surrogate or 1e999, come in by plain SQL
        raise PermanentError(f"a field of {message.event_id} is not valid JSON in UTF-8: {error}") from None


def _object(members: Mapping[str, bytes]) -> bytes:
    return b"{" + b",".join(_json(name).encode() + b":" + value for name, value in members.items()) + b"}"


# Numbers stay text: one with thousands of digits is valid JSON, and its value is not needed here.
_parse = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=refuse_constant).decode
