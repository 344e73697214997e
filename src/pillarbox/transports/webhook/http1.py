"""The responses of HTTP/1.1, as far as the transport needs them: status, three headers, the beginning of the body, and
where the response ends, so that its connection can be used again. Pure: bytes in, responses out.

The memory that a response takes is bounded: over `MAX_HEADERS` of headers are invalid, and of a body no more than
`EXCERPT_BYTES` is kept. What follows is not read; then the connection must be closed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pillarbox.transports.webhook.responses import EXCERPT_BYTES

MAX_HEADERS = 64 * 1024
"""The most bytes of a status line and its headers."""
_MAX_RAW = 4 * EXCERPT_BYTES
"""The most bytes of a body in chunks, with their sizes, of which the beginning is decoded."""
_START = b"HTTP/1."
_HEADERS_END = re.compile(rb"\r?\n\r?\n")
_LONGEST_END = 4
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?:[ \t][^\r\n]*)?(?:\r?\n|\Z)")
_FIELDS = re.compile(
    rb"^(content-length|transfer-encoding|connection|retry-after|location|date):([^\r\n]*)\r?$",
    re.I | re.M,
)
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")
_TRAILER_END = re.compile(rb"(?:[^\r\n]+\r?\n)*\r?\n")
_UNTIL_CLOSED, _CHUNKED = -1, -2
"""Instead of a length of the body."""


class InvalidResponseError(Exception):
    """What the receiver sent is not a response of HTTP/1.1, or its headers are too large."""


class Response(NamedTuple):
    """A response, as far as it was read."""

    status: int
    retry_after: str | None
    location: str | None
    body: bytes
    """At most `EXCERPT_BYTES`."""
    date: str | None = None
    """The time of the response by the clock of the receiver."""


class ResponseParser:
    """Reads one response. `feed` raises InvalidResponseError."""

    __slots__ = ("_complete", "_data", "_fields", "_keeps_open", "_length", "_searched", "status")

    def __init__(self) -> None:
        self.status = 0
        """0 until the headers have arrived."""
        self._data = b""
        self._searched = 0
        """Where the search for the end of the headers continues: a receiver may send them byte by byte."""
        self._fields: dict[bytes, bytes] = {}
        self._length = 0
        self._keeps_open = False
        self._complete = False

    def feed(self, data: bytes) -> bool:
        """Whether nothing more is needed: the response is complete, or long enough."""
        self._data = self._data + data if self._data else data
        return (self.status != 0 or self._read_headers()) and self._is_enough()

    @property
    def reusable(self) -> bool:
        """Whether the connection can be used for another request."""
        return self._complete and self._keeps_open

    def response(self) -> Response:
        """What has arrived. Only once the headers are there."""
        body = _chunks(self._data)[0] if self._length == _CHUNKED else self._data
        fields = self._fields
        return Response(
            self.status,
            _text(fields.get(b"retry-after")),
            _text(fields.get(b"location")),
            body[:EXCERPT_BYTES],
            _text(fields.get(b"date")),
        )

    def _read_headers(self) -> bool:
        while True:
            data = self._data
            end = _HEADERS_END.search(data, self._searched)
            if end is None or end.end() > MAX_HEADERS:
                if len(data) > MAX_HEADERS or not (data.startswith(_START) or _START.startswith(data)):
                    raise InvalidResponseError("the response is not valid HTTP")
                self._searched = max(0, len(data) - _LONGEST_END + 1)
                return False
            lines, self._data, self._searched = data[: end.start()], data[end.end() :], 0
            found = _STATUS.match(lines)
            if found is None:
                raise InvalidResponseError("the response is not valid HTTP")
            status = int(found[2])
            if status >= 200 or status == 101:
                self._read_fields(lines, status, is_1_1=found[1] == b"1")
                return True
            # 100 and 103 come before the response.

    def _read_fields(self, lines: bytes, status: int, *, is_1_1: bool) -> None:
        fields = self._fields
        for name, padded in _FIELDS.findall(lines):
            lower, value = name.lower(), padded.strip(b" \t")
            if lower == b"content-length" and fields.get(lower, value) != value:
                raise InvalidResponseError("the response has two lengths")
            fields[lower] = value if lower not in fields else fields[lower] + b"," + value
        length = fields.get(b"content-length")
        if status in (101, 204, 304):
            self._length = 0
        elif b"transfer-encoding" in fields:
            self._length = _CHUNKED if fields[b"transfer-encoding"].lower() == b"chunked" else _UNTIL_CLOSED
        elif length is None:
            self._length = _UNTIL_CLOSED
        elif length.isdigit() and len(length) < 20:
            self._length = int(length)
        else:
            raise InvalidResponseError("the response has a length that is not a number")
        self._keeps_open = is_1_1 and status != 101 and b"close" not in fields.get(b"connection", b"").lower()
        self.status = status

    def _is_enough(self) -> bool:
        size, length = len(self._data), self._length
        if length >= 0:
            if size > length:  # what was not asked for
                self._keeps_open = False
            self._complete = size >= length
            return self._complete or size >= EXCERPT_BYTES
        if length == _CHUNKED:
            body, end = _chunks(self._data)
            if end is not None and end < size:
                self._keeps_open = False
            self._complete = end is not None
            return self._complete or len(body) >= EXCERPT_BYTES or size >= _MAX_RAW
        return size >= EXCERPT_BYTES


def _chunks(data: bytes) -> tuple[bytes, int | None]:
    """The decoded body as far as it has arrived, and the position of its end; None: it has not arrived, or what follows
    is no chunk."""
    body, at = bytearray(), 0
    while (found := _CHUNK.match(data, at)) is not None:
        size, start = int(found[1], 16), found.end()
        if size == 0:
            end = _TRAILER_END.match(data, start)
            return bytes(body), None if end is None else end.end()
        body += data[start : start + size]
        at = start + size
        if data[at : at + 2] == b"\r\n":
            at += 2
        elif data[at : at + 1] == b"\n":
            at += 1
        else:
            break
    return bytes(body), None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")
