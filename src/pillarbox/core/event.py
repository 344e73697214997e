"""An event of the application, validated before anything is written.

Text that a broker, a database or a log line cannot handle is rejected here, with the name of the field and a remedy.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Protocol, Self, cast

from pillarbox.core.errors import RecordError

MAX_ID_BYTES = 200
MAX_TEXT_BYTES = 255
"""The limit of a short string in AMQP, in bytes of UTF-8; other brokers accept it, too."""
MAX_HEADER_BYTES = 8192
MAX_HEADERS = 64
MAX_SCHEMA_VERSION = 2**31 - 1

# C0 and C1 controls, DEL, and the two Unicode line separators, which break log lines.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_OPTIONAL_TEXTS = (
    "aggregate_type",
    "aggregate_id",
    "key",
    "content_type",
    "correlation_id",
    "causation_id",
    "trace_id",
)

REPLAY_OF = "replayof"
"""The header with the id of the event that a message is a copy of."""
TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"
"""The headers of a W3C trace context: the span that created the message, and what tracing systems add to it."""

_TRACEPARENT = re.compile("(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_TRACESTATE_MEMBER = re.compile(
    "([a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})="
    r"[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_MAX_TRACESTATE_MEMBERS = 32

JSON = "application/json"
BYTES = "application/octet-stream"

_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


def uuid7() -> str:
    """A new event id: a UUIDv7 as text, with 48 bits of milliseconds, 12 bits of their fraction and 62 random bits.

    Ids sort by their time of creation, so inserts touch few index pages.
    """
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    fraction = rest * 4096 // 1_000_000
    number = milliseconds << 80 | 0x7 << 76 | fraction << 64
    number |= 0b10 << 62 | int.from_bytes(os.urandom(8), "big") >> 2
    digits = f"{number:032x}"  # not uuid.UUID, which takes a microsecond longer
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def is_traceparent(text: str) -> bool:
    """Whether the text is a valid `traceparent`: version, trace id, span id and flags."""
    return _TRACEPARENT.fullmatch(text) is not None


def is_tracestate(text: str) -> bool:
    """Whether the text is a valid `tracestate`: 1 to 32 members `key=value` with different keys."""
    if len(text) > MAX_HEADER_BYTES:
        return False
    members = [_TRACESTATE_MEMBER.fullmatch(one) for part in text.split(",") if (one := part.strip(" \t"))]
    keys = {found[1] for found in members if found is not None}
    return 0 < len(members) == len(keys) <= _MAX_TRACESTATE_MEMBERS


class Cause(Protocol):
    """An event that caused another one: an `Event`, or an event that a handler received."""

    @property
    def event_id(self) -> str: ...
    @property
    def correlation_id(self) -> str | None: ...
    @property
    def trace_id(self) -> str | None: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True)
class Event:
    """An event: a type, a payload, and optionally its aggregate, ordering key, destination and headers.

    The payload is a dict, a list, a dataclass or a pydantic model (encoded as JSON), or bytes (unchanged). Raises
    RecordError, naming the field, for a value that cannot be stored and sent unchanged.
    """

    event_type: str
    payload: Any
    event_id: str = field(default_factory=uuid7, kw_only=True)
    """The same on every attempt; consumers detect duplicates by it. Text of 1 to 200 bytes; default: a UUIDv7.

    It is an idempotency key while the event is pending. If it is recorded again after the delivery, the relay sends it
    again unless it checks the history or a ledger (`store.ledger`); the inbox of a consumer skips it in any case."""
    aggregate_type: str | None = field(default=None, kw_only=True)
    aggregate_id: str | None = field(default=None, kw_only=True)
    key: str | None = field(default=None, kw_only=True)
    """Events of one key are delivered in order. Default: aggregate_type:aggregate_id, else the aggregate_id."""
    destination: str = field(default="", kw_only=True)
    """The name of a destination, which overrides all routes; '': the routes decide."""
    content_type: str | None = field(default=None, kw_only=True)
    """Default: application/json, for bytes application/octet-stream."""
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS, kw_only=True)
    schema_version: int | None = field(default=None, kw_only=True)
    """Default: the version in `EventTypes`, else 1."""
    correlation_id: str | None = field(default=None, kw_only=True)
    causation_id: str | None = field(default=None, kw_only=True)
    trace_id: str | None = field(default=None, kw_only=True)
    occurred_at: datetime | None = field(default=None, kw_only=True)
    """Default: the database's clock when the event is recorded."""
    available_at: datetime | None = field(default=None, kw_only=True)
    """The relay does not send the event before this time."""

    def __post_init__(self) -> None:
        check_text("event_type", self.event_type, MAX_TEXT_BYTES)
        check_text("event_id", self.event_id, MAX_ID_BYTES)
        for name in _OPTIONAL_TEXTS:
            if (value := getattr(self, name)) is not None:
                check_text(name, value, MAX_TEXT_BYTES, optional=True)
        if self.destination != "":
            check_text("destination", self.destination, MAX_TEXT_BYTES)
        if self.headers is not _NO_HEADERS:
            _check_headers(self.headers)
            object.__setattr__(self, "headers", MappingProxyType(dict(self.headers)))
        if self.schema_version is not None:
            _check_version(self.schema_version)
        if self.occurred_at is not None:
            _check_time("occurred_at", self.occurred_at)
        if self.available_at is not None:
            _check_time("available_at", self.available_at)

    def caused_by(self, cause: Cause) -> Self:
        """This event, linked to its cause by causation id, correlation id and trace context.

        The correlation id of a chain is the id of its first event. Values that this event already has stay.
        """
        headers = self.headers
        if self.trace_id is None and cause.trace_id is not None and not {TRACEPARENT, TRACESTATE} & headers.keys():
            state = cause.headers.get(TRACESTATE, "")
            if is_tracestate(state) and len(headers) < MAX_HEADERS:
                headers = {**headers, TRACESTATE: state}
        return replace(
            self,
            causation_id=self.causation_id or cause.event_id,
            correlation_id=self.correlation_id or cause.correlation_id or cause.event_id,
            trace_id=self.trace_id or cause.trace_id,
            headers=headers,
        )


def check_text(name: str, value: object, max_bytes: int, *, optional: bool = False, field: str | None = None) -> None:
    """Raise RecordError unless `value` is non-empty text of at most `max_bytes` bytes without control characters."""
    if type(value) is str and value.isascii() and value.isprintable() and 0 < len(value) <= max_bytes:
        return  # nearly every text, without a regular expression
    field = field or name
    if value is None and optional:
        return
    if not isinstance(value, str):
        raise RecordError(f"{name} must be text, not {type(value).__name__}; pass str(…) of it", field=field)
    if not value:
        raise RecordError(f"{name} is empty; give it a value" + (" or leave it out" if optional else ""), field=field)
    _check_clean(name, value, field)
    if (size := len(value.encode())) > max_bytes:
        raise RecordError(f"{name} has {size} bytes of UTF-8; the limit is {max_bytes}; shorten it", field=field)


def _check_clean(name: str, value: str, field: str) -> None:
    if found := _CONTROL.search(value):
        raise RecordError(
            f"{name} has the control character U+{ord(found[0]):04X} at position {found.start()}; remove it",
            field=field,
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise RecordError(
            f"{name} has a lone surrogate at position {error.start}, which UTF-8 cannot carry; "
            "decode the source with the right encoding",
            field=field,
        ) from None


def _check_headers(given: object) -> None:
    if not isinstance(given, Mapping):
        raise RecordError(f"headers must be a mapping of text to text, not {type(given).__name__}", field="headers")
    headers = cast("Mapping[object, object]", given)
    if len(headers) > MAX_HEADERS:
        raise RecordError(
            f"headers has {len(headers)} entries; at most {MAX_HEADERS} are possible; remove some", field="headers"
        )
    for name, value in headers.items():
        if not isinstance(name, str):
            raise RecordError(f"headers: the name {name!r} must be text", field="headers")
        where = f"headers[{name[:80]!r}]"
        check_text(f"headers: the name {name[:80]!r}", name, MAX_TEXT_BYTES, field="headers")
        if not isinstance(value, str):
            raise RecordError(f"{where} must be text, not {type(value).__name__}; pass str(…) of it", field="headers")
        _check_clean(where, value, "headers")
        if len(value.encode()) > MAX_HEADER_BYTES:
            raise RecordError(
                f"{where} is longer than {MAX_HEADER_BYTES} bytes; put it in the payload", field="headers"
            )


def _check_version(version: object) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= MAX_SCHEMA_VERSION:
        raise RecordError(f"schema_version must be an integer of 1 or more, not {version!r}", field="schema_version")


def _check_time(name: str, value: object) -> None:
    if not isinstance(value, datetime):
        raise RecordError(f"{name} must be a datetime, not {type(value).__name__}", field=name)
    if value.utcoffset() is None:
        raise RecordError(
            f"{name} has no time zone, so its time is ambiguous; pass datetime.now(UTC) or .replace(tzinfo=…)",
            field=name,
        )
    try:
        in_utc = value.astimezone(UTC)
    except OverflowError:
        in_utc = _FIRST
    if in_utc in (_FIRST, _LAST):  # asyncpg stores them as infinity
        raise RecordError(f"{name} is outside the supported range (years 1 to 9999); pass a time within it", field=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsRecorded:
    """Events were recorded in the caller's transaction, which may still be rolled back."""

    events: tuple[Event, ...]


RecordObserver = Callable[[EventsRecorded], None]
"""Must neither raise nor block: it is called within the caller's transaction."""
