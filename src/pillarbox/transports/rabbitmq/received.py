"""A message's properties as they came over the wire: kept as bytes, read leniently, passed on unchanged.

pika decodes a header frame as a whole: over one value that Python cannot hold (a timestamp of 2^63, a table nested
deeper than the stack) it drops the connection, and with it everything in flight. Encoded again, a float has lost its
fraction and a large number raises. So the bytes are kept: what can be read is read, what cannot is left out, and a
message that is moved keeps every header of its producer as it was.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, Final, NamedTuple

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
_DEEPEST = 16
"""Tables and arrays within each other that are read; what lies deeper is left out."""
_PERSISTENT = b"\x02"


class UnreadableError(Exception):
    """These bytes are nothing that AMQP knows, or nothing that Python can hold."""


class Header(NamedTuple):
    """One entry of a table, as bytes."""

    name: bytes
    value: bytes
    """With its type."""

    @property
    def size(self) -> int:
        return 1 + len(self.name) + len(self.value)


class Received:
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

    def passed_on(
        self, notes: Mapping[str, str | int], *, keep: Collection[str], drop: Callable[[bytes], bool], most: int
    ) -> Encoded:
        """The same message on its way to another queue, persistent: the properties to `keep`, and its headers but for
        those whose names are to `drop`, followed by `notes`.

        Where more than `most` bytes would result, the longest headers of the producer are left out.
        """
        own = [Header(name.encode(), _noted(value)) for name, value in notes.items()]
        written = {header.name for header in own}
        kept = [header for header in self._raw_headers() if header.name not in written and not drop(header.name)]
        fields = {name: raw for name, raw in self._fields.items() if name in keep}
        room = most - 2 - sum(map(len, fields.values())) - 4 - 1 - sum(header.size for header in own)
        table = b"".join(map(_entry, [*_fitting(kept, room), *own]))
        return Encoded(fields | {"headers": struct.pack(">I", len(table)) + table, "delivery_mode": _PERSISTENT})

    def _text(self, name: str) -> str | None:
        """What is not UTF-8 has lone surrogates in its place, which no check of a text lets pass."""
        raw = self._fields.get(name)
        return None if raw is None else raw[1:].decode("utf-8", "surrogateescape")

    def _raw_headers(self) -> Iterator[Header]:
        return _entries(self._fields.get("headers", b"")[4:])


class Encoded:
    """Properties that can be published; pika asks for nothing but this."""

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
    while word & 1:  # further flags, for properties that nobody has defined
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
    """One value with its type; nothing within it is looked at."""
    kind = encoded[offset : offset + 1]
    if kind in _PREFIXED:
        size = 5 + struct.unpack_from(">I", encoded, offset + 1)[0]
    elif kind in _NUMBERS:
        size = 1 + struct.calcsize(_NUMBERS[kind])
    else:
        raise UnreadableError
    return _taken(encoded, offset, size)


def _entries(table: bytes) -> Iterator[Header]:
    """As far as it can be told where one ends and the next begins."""
    offset = 0
    try:
        while offset < len(table):
            name = _taken(table, offset + 1, table[offset])
            value = _value_at(table, offset + 1 + len(name))
            yield (header := Header(name, value))
            offset += header.size
    except (UnreadableError, struct.error):
        return


def _entry(header: Header) -> bytes:
    return bytes([len(header.name)]) + header.name + header.value


def _fitting(headers: list[Header], room: int) -> list[Header]:
    """As many as fit, the shortest first chosen, in their order."""
    if sum(header.size for header in headers) <= room:
        return headers
    chosen: set[int] = set()
    for position in sorted(range(len(headers)), key=lambda position: headers[position].size):
        room -= headers[position].size
        if room < 0:
            break
        chosen.add(position)
    return [header for position, header in enumerate(headers) if position in chosen]


def _noted(value: str | int) -> bytes:
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
            if depth == _DEEPEST:
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
