"""The two kinds of frames that travel once per message: encodes a publish, recognises the confirms that come back.

Pure: bytes in, bytes out. Everything else on a connection is pika's, and so is every message that this encoder does not
take: what is too long, too large or of another type goes to pika, which encodes it or says why it cannot.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from pillarbox.transports.rabbitmq.confirms import Publication

K = TypeVar("K", bound=Hashable)

_METHOD, _HEADER, _BODY, _END = 1, 2, 3, 0xCE
_END_BYTE = b"\xce"
_OVERHEAD = 8
"""Bytes of a frame beside its payload."""
_CLASS_BASIC = 60
_PUBLISH = struct.pack(">HHH", _CLASS_BASIC, 40, 0)
_MANDATORY = b"\x01"
_FLAGS = 1 << 15 | 1 << 13 | 1 << 12 | 1 << 7 | 1 << 6 | 1 << 5
"""Content type, headers, delivery mode, message id, timestamp, type: the properties that every message has."""
_CORRELATION_ID = 1 << 10
_HEADER_SIZE = 18
"""Bytes of a header frame's payload beside the properties: class, weight, body size, flags, length of the table."""
_REPEATED, _ELSEWHERE = 1, 2
_KINDS = {"eventType": _REPEATED, "aggregateType": _REPEATED, "correlationId": _ELSEWHERE, "schemaVersion": _ELSEWHERE}
"""Headers whose values repeat, and headers that are sent as something else: a property, a number."""
_RESERVE = 8192
"""Bytes of a header frame that are left to everything but the headers; as in properties.py."""
_CACHE_SIZE = 1024
_LONGEST_KEPT = 255
"""Characters of a value that is kept, so that memory is bounded."""

_frame_start = struct.Struct(">BHI").pack
_header_start = struct.Struct(">BHIHHQH").pack
_between = struct.Struct(">BBHI").pack
_uint32 = struct.Struct(">I").pack
_uint64 = struct.Struct(">Q").pack


class _Cache(dict[K, bytes]):
    """Encodes each value once. Starts afresh when it is full, so that endless routing keys take no endless memory."""

    def __init__(self, encode: Callable[[K], bytes]) -> None:
        self._encode = encode

    def __missing__(self, value: K) -> bytes:
        encoded = self._encode(value)
        if len(self) >= _CACHE_SIZE:
            self.clear()
        self[value] = encoded
        return encoded


class PublishEncoder:
    """Encodes the messages of one channel: persistent and mandatory, as `properties_of` and pika would."""

    def __init__(self, channel: int, frame_max: int) -> None:
        self._channel = channel
        self._largest_body = frame_max - _OVERHEAD
        self._largest_table = frame_max - _RESERVE
        self._methods: _Cache[tuple[str, str]] = _Cache(self._method)
        self._texts: _Cache[str] = _Cache(_short_string)
        self._names: _Cache[str] = _Cache(_header_name)
        self._repeated: _Cache[tuple[str, str]] = _Cache(_header)
        self._versions: _Cache[int] = _Cache(_schema_version)

    def encode(self, publications: Sequence[Publication], timestamp: int) -> list[bytes] | None:
        """The frames of these messages, in pieces to be joined. None: pika has to encode one of them, or refuse it."""
        pieces: list[bytes] = []
        stamp = _uint64(timestamp)
        try:
            for publication in publications:
                pieces += self._encode(publication, stamp)
        except (AttributeError, OverflowError, TypeError, ValueError, struct.error):
            return None
        return pieces

    def _encode(self, publication: Publication, stamp: bytes) -> tuple[bytes, ...]:
        # This runs for every message. So it names every field once and calls nothing that it can write out.
        _, outgoing, exchange, routing_key = publication
        message, _, body, content_type, headers, _, _ = outgoing
        version = message.schema_version
        if type(body) is not bytes or type(version) is not int:
            raise TypeError(type(body), type(version))
        names, texts, kinds = self._names, self._texts, _KINDS
        fields = [self._versions[version]]
        left_out = 0
        for header in headers.items():
            name, value = header
            kind = kinds.get(name)
            if kind == _REPEATED and len(value) <= _LONGEST_KEPT:
                fields.append(self._repeated[header])
            elif kind == _ELSEWHERE:
                left_out += len(name) + len(value.encode())
            else:
                raw = value.encode()
                fields += (names[name], _uint32(len(raw)), raw)
        table = b"".join(fields)
        size, length = len(body), len(table)
        # `properties_of` counts those that are left out, too, and refuses what is too large.
        if length + left_out > self._largest_table:
            raise ValueError(length)
        event_id = message.event_id.encode()
        flags, correlation_id = _FLAGS, b""
        if message.correlation_id is not None:
            flags, correlation_id = _FLAGS | _CORRELATION_ID, _short_string(message.correlation_id)
        # Delivery mode 2 is persistent. A message id of more than 255 bytes overflows %c.
        rest = b"\x02%b%c%b%b%b" % (correlation_id, len(event_id), event_id, stamp, texts[message.event_type])
        content = texts[content_type]
        payload = _HEADER_SIZE + len(content) + length + len(rest)
        start = _header_start(_HEADER, self._channel, payload, _CLASS_BASIC, 0, size, flags)
        method = self._methods[exchange, routing_key]
        if 0 < size <= self._largest_body:
            between = _between(_END, _BODY, self._channel, size)
            return method, start, content, _uint32(length), table, rest, between, body, _END_BYTE
        return (method, start, content, _uint32(length), table, rest, _END_BYTE, *self._body_frames(body))

    def _body_frames(self, body: bytes) -> list[bytes]:
        pieces: list[bytes] = []
        for start in range(0, len(body), self._largest_body):
            piece = body[start : start + self._largest_body]
            pieces += (_frame_start(_BODY, self._channel, len(piece)), piece, _END_BYTE)
        return pieces

    def _method(self, address: tuple[str, str]) -> bytes:
        exchange, routing_key = address
        payload = _PUBLISH + _short_string(exchange) + _short_string(routing_key) + _MANDATORY
        return _frame_start(_METHOD, self._channel, len(payload)) + payload + _END_BYTE


def _short_string(text: str) -> bytes:
    """Raises ValueError for more than 255 bytes, which no single byte counts, and for what is not UTF-8."""
    raw = text.encode()
    return bytes((len(raw),)) + raw


def _header_name(name: str) -> bytes:
    """With the type of its value, a long string."""
    return _short_string(name) + b"S"


def _header(header: tuple[str, str]) -> bytes:
    name, value = header
    raw = value.encode()
    return _header_name(name) + _uint32(len(raw)) + raw


def _schema_version(version: int) -> bytes:
    """Raises struct.error for what 64 bits cannot hold."""
    name = _short_string("schemaVersion")
    if -(2**31) <= version < 2**31:
        return name + struct.pack(">ci", b"I", version)
    return name + struct.pack(">cq", b"l", version)
