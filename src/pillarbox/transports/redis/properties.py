"""The fields of a stream entry: what a message is sent as, and how a received entry is read.

`id`, `type`, `content_type`, `correlation_id` and `body` are fields; each header is a field with the prefix `header:`.
Thus no header of a producer replaces a field of ours, and a consumer in any language reads an entry without parsing.
The counts of failed attempts are fields that begin with `pillarbox-`.

An entry that moves to another stream keeps its fields, byte by byte. Reading raises nothing, whatever a producer wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from pillarbox.core.clock import timestamp
from pillarbox.core.source import Incoming
from pillarbox.core.transport import Outgoing

ATTEMPTS = "pillarbox-attempts"
DEFERRALS = "pillarbox-deferrals"
REASON = "pillarbox-reason"
FIRST_FAILED_AT = "pillarbox-first-failed-at"
LAST_FAILED_AT = "pillarbox-last-failed-at"
QUEUE = "pillarbox-queue"
GROUP = "pillarbox-group"

HEADER = "header:"
_HEADER = HEADER.encode()
_OURS = frozenset(
    name.encode() for name in (ATTEMPTS, DEFERRALS, REASON, FIRST_FAILED_AT, LAST_FAILED_AT, QUEUE, GROUP)
)
_MAX_REASON_BYTES = 1000
_MAX_COUNT = 2**31 - 1
"""A producer can write any number; larger ones count as this."""
_MAX_TIME = 40
"""Characters of a timestamp that is passed on."""
_CACHE_SIZE = 1024

Fields = Sequence[bytes]
"""Names and values in turn, as Redis returns them."""


class _HeaderNames(dict[str, bytes]):
    """Field names of headers, made once. Starts afresh when it is full: endless names take no endless memory."""

    def __missing__(self, name: str) -> bytes:
        if len(self) >= _CACHE_SIZE:
            self.clear()
        field = self[name] = _HEADER + name.encode()
        return field


_header_names = _HeaderNames()


def fields_of(outgoing: Outgoing) -> tuple[str | bytes, ...]:
    """The fields of a message, for XADD. Raises UnicodeEncodeError for a header name that is not UTF-8."""
    message, _, body, content_type, headers, _, _ = outgoing
    fields: list[str | bytes] = [
        *(b"id", message.event_id, b"type", message.event_type),
        *(b"content_type", content_type, b"body", body),
    ]
    correlation_id = message.correlation_id
    if correlation_id is not None:
        fields += (b"correlation_id", correlation_id)
    names = _header_names
    for name, value in headers.items():
        if name != "correlationId" or correlation_id is None:
            fields += (names[name], value)
    return tuple(fields)


class ReceivedEntry:
    """An entry of a stream with its fields."""

    __slots__ = ("_by_name", "entry_id", "fields", "stream")

    def __init__(self, stream: str, entry_id: bytes, fields: Fields) -> None:
        self.stream = stream
        self.entry_id = entry_id
        self.fields = fields
        names = iter(fields)
        self._by_name = dict(zip(names, names, strict=False))

    def text(self, name: str) -> str | None:
        """Bytes that are not UTF-8 become lone surrogates, which every check of a text rejects."""
        raw = self._by_name.get(name.encode())
        return None if raw is None else raw.decode("utf-8", "surrogateescape")

    def count(self, name: str) -> int:
        """The count in a field; 0 if its value is not a positive number."""
        raw = self._by_name.get(name.encode(), b"")
        return min(int(raw), _MAX_COUNT) if raw.isdigit() and len(raw) < 20 else 0

    @property
    def body(self) -> bytes:
        return self._by_name.get(b"body", b"")

    def incoming(self, *, stream: str = "") -> Incoming:
        """The message as consumers see it; `stream`: where its producer wrote it."""
        return Incoming(
            event_id=self.text("id"),
            event_type=self.text("type"),
            body=self.body,
            content_type=self.text("content_type"),
            correlation_id=self.text("correlation_id"),
            headers=self._headers(),
            attempts=self.count(ATTEMPTS),
            deferrals=self.count(DEFERRALS),
            destination=stream,
        )

    def failed(self, incoming: Incoming, *, queue: str, group: str, reason: str, counted: bool) -> list[str | bytes]:
        """The fields after one more failure, for another stream: ours first."""
        now = timestamp(datetime.now(UTC))
        first = self.text(FIRST_FAILED_AT)
        ours: Mapping[str, str] = {
            ATTEMPTS: str(incoming.attempts + counted),
            DEFERRALS: str(incoming.deferrals + (not counted)),
            FIRST_FAILED_AT: first if first is not None and first.isascii() and len(first) <= _MAX_TIME else now,
            LAST_FAILED_AT: now,
            QUEUE: queue,
            GROUP: group,
        }
        limited = reason.encode("utf-8", "backslashreplace")[:_MAX_REASON_BYTES].decode("utf-8", "ignore")
        written = [text for pair in ours.items() for text in pair]
        return [*written, REASON, limited, *_without_ours(self.fields)]

    def _headers(self) -> dict[str, str]:
        return {
            name[len(_HEADER) :].decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
            for name, value in self._by_name.items()
            if name.startswith(_HEADER)
        }


def _without_ours(fields: Fields) -> Iterable[bytes]:
    names = iter(fields)
    for name, value in zip(names, names, strict=False):
        if name not in _OURS:
            yield from (name, value)
