"""Received messages and their properties: kept as bytes, read leniently, passed on unchanged.

pika decodes a header frame as a whole: over one value that Python cannot hold (a timestamp of 2^63, a table nested
deeper than the stack) it drops the connection, and with it everything in flight. Encoded again, a float has lost its
fraction and a large number raises. So the bytes are kept: readable values are read, unreadable ones left out.

A message that moves to another queue stays the same message: body, properties and the producer's headers stay, byte by
byte. The broker would act again upon an expiration, further routing keys and the name of the publishing user: these
meant the first delivery and are removed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, Final, NamedTuple

from pillarbox.core.clock import timestamp
from pillarbox.core.source import Incoming

ATTEMPTS = "pillarbox-attempts"
DEFERRALS = "pillarbox-deferrals"
REASON = "pillarbox-reason"
FIRST_FAILED_AT = "pillarbox-first-failed-at"
LAST_FAILED_AT = "pillarbox-last-failed-at"
QUEUE = "pillarbox-queue"

_SHORT, _TABLE = "short string", "table"
_FIELDS: Mapping[str, str | int] = {
    "content_type": _SHORT,
    "content_encoding": _SHORT,
    "headers": _TABLE,
    "delivery_mode": 1,
    "priority": 1,
    "correlation_id": _SHORT,
    "reply_to": _SHORT,
    "expiration": _SHORT,
    "message_id": _SHORT,
    "timestamp": 8,
    "type": _SHORT,
    "user_id": _SHORT,
    "app_id": _SHORT,
    "cluster_id": _SHORT,
}
"""The kind of each property, or how many bytes it has, in the order of their flags."""
_NUMBERS = {
    b"t": ">?",
    b"b": ">b",
    b"B": ">B",
    b"U": ">h",
    b"s": ">h",
    b"u": ">H",
    b"I": ">i",
    b"i": ">I",
    b"L": ">q",
    b"l": ">q",
    b"f": ">f",
    b"d": ">d",
    b"T": ">Q",
    b"D": ">Bi",
    b"V": ">",
}
_PREFIXED = (b"S", b"x", b"A", b"F")
_MAX_DEPTH = 16
"""Levels of nested tables and arrays that are read; deeper ones are left out."""
_PERSISTENT = b"\x02"
_REMOVED = ("delivery_mode", "expiration", "headers", "user_id", "cluster_id")
"""Properties that a moved message does not keep, or that are written anew."""
_BROKER_HEADERS = (b"x-death", b"x-delivery-count", b"CC", b"BCC")
_BROKER_PREFIXES = (b"x-first-death-", b"x-last-death-")
_AROUND_PROPERTIES = 20  # bytes of a header frame besides the properties
_MAX_REASON_BYTES = 1000
"""Bytes: fits with everything else into the smallest frame of AMQP."""
_MAX_COUNT = 2**31 - 1
"""A producer can write any number; larger ones count as this."""


class UnreadableError(Exception):
    """Bytes that AMQP does not define, or a value that Python cannot hold."""


class EncodedHeader(NamedTuple):
    """One entry of a table, as bytes."""

    name: bytes
    value: bytes
    """With its type."""

    @property
    def size(self) -> int:
        return 1 + len(self.name) + len(self.value)


class ReceivedProperties:
    """The properties of one message; nothing here raises, whatever the producer wrote."""

    def __init__(self, encoded: bytes) -> None:
        try:
            self._fields = _split(encoded)
        except (UnreadableError, IndexError, struct.error):
            self._fields = {}

    @property
    def content_type(self) -> str | None:
        return self._text("content_type")

    @property
    def correlation_id(self) -> str | None:
        return self._text("correlation_id")

    @property
    def message_id(self) -> str | None:
        return self._text("message_id")

    @property
    def type(self) -> str | None:
        return self._text("type")

    @cached_property
    def headers(self) -> Mapping[str, Any]:
        """Those whose name is UTF-8 and whose value can be read."""
        return _read_table(self._fields.get("headers", b"")[4:], depth=0)

    def failed(
        self, incoming: Incoming, *, queue: str, reason: str, counted: bool, frame_max: int
    ) -> EncodedProperties:
        """The properties after one more failure, for another queue."""
        now = timestamp(datetime.now(UTC))
        first = self.headers.get(FIRST_FAILED_AT)
        return self.moved(
            {
                ATTEMPTS: incoming.attempts + counted,
                DEFERRALS: incoming.deferrals + (not counted),
                REASON: reason.encode("utf-8", "backslashreplace")[:_MAX_REASON_BYTES].decode("utf-8", "ignore"),
                FIRST_FAILED_AT: first if isinstance(first, str) and len(first) <= len(now) else now,
                LAST_FAILED_AT: now,
                QUEUE: queue,
            },
            frame_max=frame_max,
        )

    def moved(self, headers: Mapping[str, str | int] | None = None, *, frame_max: int) -> EncodedProperties:
        """The properties for another queue, persistent, with `headers` added.

        If they do not fit into one frame, the longest headers of the producer are left out.
        """
        added = [EncodedHeader(name.encode(), _header_value(value)) for name, value in (headers or {}).items()]
        replaced = {header.name for header in added}
        kept = [
            header
            for header in _entries(self._fields.get("headers", b"")[4:])
            if header.name not in replaced
            and header.name not in _BROKER_HEADERS
            and not header.name.startswith(_BROKER_PREFIXES)
        ]
        fields = {name: raw for name, raw in self._fields.items() if name not in _REMOVED}
        left = frame_max - _AROUND_PROPERTIES - 2 - sum(map(len, fields.values())) - 4 - 1
        fitting = _fitting(kept, left - sum(header.size for header in added))
        table = b"".join(bytes([len(header.name)]) + header.name + header.value for header in (*fitting, *added))
        fields |= {"headers": struct.pack(">I", len(table)) + table, "delivery_mode": _PERSISTENT}
        return EncodedProperties(fields)

    def _text(self, name: str) -> str | None:
        """Bytes that are not UTF-8 become lone surrogates, which every check of a text rejects."""
        raw = self._fields.get(name)
        return None if raw is None else raw[1:].decode("utf-8", "surrogateescape")


class ReceivedMessage(NamedTuple):
    """A message with the delivery tag by which its channel acks it."""

    tag: int
    queue: str
    redelivered: bool
    properties: ReceivedProperties
    body: bytes

    @property
    def delivery_count(self) -> int:
        """How often it was delivered before without acknowledgement; a classic queue counts only to one."""
        return max(count_in(self.properties.headers, "x-delivery-count"), int(self.redelivered))

    def incoming(self, *, queue: str = "") -> Incoming:
        """The message as consumers of `queue` see it; numbers and times in headers become text, others are left out."""
        properties, headers = self.properties, self.properties.headers
        read = {name: _as_text(value) for name, value in headers.items()}
        return Incoming(
            event_id=properties.message_id,
            event_type=properties.type,
            body=self.body,
            content_type=properties.content_type,
            correlation_id=properties.correlation_id,
            headers={name: text for name, text in read.items() if text is not None},
            attempts=count_in(headers, ATTEMPTS),
            deferrals=count_in(headers, DEFERRALS),
            destination=queue,
        )


def _as_text(value: object) -> str | None:
    if isinstance(value, datetime):
        return timestamp(value)
    return str(value) if isinstance(value, str | int | float) else None


def count_in(headers: Mapping[str, Any], name: str) -> int:
    """The count in a header; 0 if its value is not a positive number."""
    value = headers.get(name)
    return min(value, _MAX_COUNT) if type(value) is int and value > 0 else 0


class EncodedProperties:
    """Properties to publish, with the only attributes that pika uses."""

    INDEX: Final = 60
    """The class of messages in AMQP."""

    def __init__(self, fields: Mapping[str, bytes]) -> None:
        self._fields = fields

    def encode(self) -> list[bytes]:
        flags = sum(0x8000 >> position for position, name in enumerate(_FIELDS) if name in self._fields)
        return [struct.pack(">H", flags), *(self._fields[name] for name in _FIELDS if name in self._fields)]


def _split(encoded: bytes) -> dict[str, bytes]:
    (flags,) = struct.unpack_from(">H", encoded)
    offset, word = 2, flags
    while word & 1:  # further flags, for properties that AMQP does not define
        (word,) = struct.unpack_from(">H", encoded, offset)
        offset += 2
    fields: dict[str, bytes] = {}
    for position, (name, kind) in enumerate(_FIELDS.items()):
        if flags & (0x8000 >> position):
            match kind:
                case int():
                    size = kind
                case "table":
                    size = 4 + struct.unpack_from(">I", encoded, offset)[0]
                case _:
                    size = 1 + encoded[offset]
            fields[name] = _taken(encoded, offset, size)
            offset += size
    return fields


def _taken(encoded: bytes, offset: int, size: int) -> bytes:
    if offset + size > len(encoded):
        raise UnreadableError
    return encoded[offset : offset + size]


def _value_at(encoded: bytes, offset: int) -> bytes:
    """One value with its type, unread."""
    kind = encoded[offset : offset + 1]
    if kind in _PREFIXED:
        size = 5 + struct.unpack_from(">I", encoded, offset + 1)[0]
    elif kind in _NUMBERS:
        size = 1 + struct.calcsize(_NUMBERS[kind])
    else:
        raise UnreadableError
    return _taken(encoded, offset, size)


def _entries(table: bytes) -> Iterator[EncodedHeader]:
    """Up to the first entry whose end cannot be determined."""
    offset = 0
    try:
        while offset < len(table):
            name = _taken(table, offset + 1, table[offset])
            value = _value_at(table, offset + 1 + len(name))
            yield (header := EncodedHeader(name, value))
            offset += header.size
    except (UnreadableError, struct.error):
        return


def _fitting(headers: list[EncodedHeader], left: int) -> list[EncodedHeader]:
    """The shortest headers that fit into the bytes left, in their order."""
    if sum(header.size for header in headers) <= left:
        return headers
    chosen: set[int] = set()
    for position in sorted(range(len(headers)), key=lambda position: headers[position].size):
        left -= headers[position].size
        if left < 0:
            break
        chosen.add(position)
    return [header for position, header in enumerate(headers) if position in chosen]


def _header_value(value: str | int) -> bytes:
    if isinstance(value, int):
        return struct.pack(">cq", b"l", value)
    text = value.encode("utf-8", "backslashreplace")
    return struct.pack(">cI", b"S", len(text)) + text


def _read_table(table: bytes, depth: int) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for header in _entries(table):
        try:
            read[header.name.decode()] = _read(header.value, depth)
        except (UnreadableError, ValueError, OverflowError, OSError):
            continue
    return read


def _read_array(array: bytes, depth: int) -> list[Any]:
    read: list[Any] = []
    offset = 0
    try:
        while offset < len(array):
            value = _value_at(array, offset)
            offset += len(value)
            try:
                read.append(_read(value, depth))
            except (UnreadableError, ValueError, OverflowError, OSError):
                continue
    except (UnreadableError, struct.error):
        pass
    return read


def _read(value: bytes, depth: int) -> Any:
    """Raises UnreadableError, ValueError, OverflowError, OSError."""
    kind, content = value[:1], value[5:]
    match kind:
        case b"S":
            return content.decode()
        case b"x":
            return content
        case b"A" | b"F":
            if depth == _MAX_DEPTH:
                raise UnreadableError
            return (_read_array if kind == b"A" else _read_table)(content, depth + 1)
        case b"V":
            return None
        case _:
            pass
    numbers = struct.unpack(_NUMBERS[kind], value[1:])
    match kind:
        case b"T":
            return datetime.fromtimestamp(numbers[0], UTC)
        case b"D":
            return Decimal(numbers[1]).scaleb(-numbers[0])
        case _:
            return numbers[0]
