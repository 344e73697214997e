"""Headers of NATS messages: percent-encoded where a header line cannot hold them, and decoded when received.

A header line holds printable ASCII. What it does not hold (other characters, control characters, spaces at either end),
and the percent sign itself, is written as percent-encoded UTF-8; everything else stays as it is. So each header arrives
as the producer recorded it. The server acts upon headers that begin with `Nats-`: such a name is sent with its
first character encoded, and the server ignores it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from pillarbox.core.source import Incoming

Kind = Literal["work", "wait", "ready", "quarantine"]
"""Whence a message came: from its stream, or as a copy from the stream of retries."""

EVENT_ID = "eventId"
CONTENT_TYPE = "content-type"
EVENT_TYPE = "eventType"
CORRELATION_ID = "correlationId"
MESSAGE_ID = "Nats-Msg-Id"
EXPECTED_STREAM = "Nats-Expected-Stream"
ATTEMPTS = "pillarbox-attempts"
DEFERRALS = "pillarbox-deferrals"
REASON = "pillarbox-reason"
FIRST_FAILED_AT = "pillarbox-first-failed-at"
LAST_FAILED_AT = "pillarbox-last-failed-at"
SUBJECT = "pillarbox-subject"
DUE = "pillarbox-due"
_OURS = (EVENT_ID, ATTEMPTS, DEFERRALS, DUE, SUBJECT, MESSAGE_ID, FIRST_FAILED_AT, LAST_FAILED_AT, REASON)
"""Headers that a copy adds or replaces, the most important ones first."""

OWN = frozenset({EVENT_ID.lower(), CONTENT_TYPE})
"""Names that a header of a producer does not replace, besides those that the relay writes."""
_FIRST_LINE = b"NATS/1.0"
MAX_HEADERS = 65_535
"""The most bytes of headers that JetStream stores with a message."""
_NAME = "!#$&'*+-.^_`|~"
"""Characters of a name besides letters and digits."""
_VALUE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in "%")
_CLOUDEVENT = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '%"')
_CLOUDEVENTS_PREFIX = "ce-"
_CLOUDEVENTS_MARK, _CLOUDEVENTS_TYPE = "ce-specversion", "application/cloudevents"
_MAX_COUNT = 2**31 - 1
"""A producer can write any number; larger ones count as this."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PulledMessage:
    """A received message, and where to acknowledge it."""

    kind: Kind
    subject: str
    reply: str
    body: bytes
    block: bytes | None
    stream: str
    sequence: int
    """Its sequence in the stream."""
    stored_at: str
    """When the stream stored it, as the server writes it. A stream that is created again repeats sequences."""
    delivered: int
    """The number of this delivery, from 1."""

    @property
    def quarantined(self) -> bool:
        return self.kind == "quarantine"

    def sent_headers(self) -> dict[str, str]:
        """The headers, not decoded."""
        return read_block(self.block)

    def first_subject(self, sent: Mapping[str, str]) -> str:
        """The subject that its producer sent it to, which a header of a copy has."""
        return self.subject if self.kind == "work" or SUBJECT not in sent else decode(sent[SUBJECT])


def pulled(kind: Kind, subject: bytes, reply: bytes, body: bytes, block: bytes | None) -> PulledMessage | None:
    """The message; None if its reply subject is not that of a JetStream delivery."""
    words = reply.decode("utf-8", "replace").split(".")
    # $JS.ACK.stream.consumer.delivered.sequence.sequence of the consumer.time.…; since NATS 2.9 possibly domain and
    # account before the stream.
    start = {9: 2}.get(len(words), 4)
    try:
        stream, delivered, sequence = words[start], int(words[start + 2]), int(words[start + 3])
        stored_at = words[start + 5]
    except (IndexError, ValueError):
        return None
    return PulledMessage(
        kind=kind,
        subject=subject.decode("utf-8", "backslashreplace"),
        reply=".".join(words),
        body=body,
        block=block,
        stream=stream,
        sequence=sequence,
        stored_at=stored_at,
        delivered=delivered,
    )


class ApiError(Exception):
    """JetStream refused a request. `status` is like one of HTTP, `code` says more."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.status = int(error.get("code") or 0)
        self.code = int(error.get("err_code") or self.status)
        super().__init__(f"{error.get('description', 'unknown error')} ({self.code})")


@lru_cache(maxsize=4096)
def encode_name(name: str) -> str:
    """The name in a header line. Raises UnicodeEncodeError for a lone surrogate."""
    encoded = quote(name, safe=_NAME)
    return f"%{ord(encoded[0]):02X}{encoded[1:]}" if encoded[:5].lower() == "nats-" else encoded


def encode_value(value: str) -> str:
    """The value in a header line. Raises UnicodeEncodeError for a lone surrogate."""
    if value.isascii() and value.isprintable() and "%" not in value and value[:1] != " " != value[-1:]:
        return value
    encoded = quote(value, safe=_VALUE)
    start, end = len(encoded) - len(encoded.lstrip(" ")), len(encoded.rstrip(" "))
    if start > end:
        return "%20" * len(encoded)
    return "%20" * start + encoded[start:end] + "%20" * (len(encoded) - end)


def encode_header(name: str, value: str) -> str:
    """One line. An attribute of a CloudEvent is encoded as its specification says: spaces and quotes, too."""
    if name.startswith(_CLOUDEVENTS_PREFIX):
        return f"{encode_name(name)}: {quote(value, safe=_CLOUDEVENT)}\r\n"
    return f"{encode_name(name)}: {encode_value(value)}\r\n"


def read_block(raw: bytes | None) -> dict[str, str]:
    """The headers of a received message as they are sent, not decoded; the first one of a name. Raises nothing."""
    found: dict[str, str] = {}
    for line in (raw or b"").split(b"\r\n")[1:]:
        name, colon, value = line.partition(b":")
        if colon:
            found.setdefault(_text(name.strip()), _text(value.strip(b" \t")))
    return found


def status_of(raw: bytes | None) -> int:
    """The status with which the server itself answers; 0: it is a message."""
    if raw is None or not raw.startswith(_FIRST_LINE + b" "):
        return 0
    code = raw[len(_FIRST_LINE) + 1 : len(_FIRST_LINE) + 4]
    return int(code) if code.isdigit() else 0


def decode(text: str) -> str:
    """The text of a name or value. Bytes that are not UTF-8 become lone surrogates, which every check rejects."""
    if "%" not in text:
        return text
    return unquote_to_bytes(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def incoming_of(sent: Mapping[str, str], body: bytes, *, subject: str = "", is_copy: bool = False) -> Incoming:
    """The message as consumers see it, from headers that are not decoded. The message id of another producer is the id
    of its event, unless that is a CloudEvent, which has an id; the message id of a copy is ours."""
    headers = {decode(name): decode(value) for name, value in sent.items() if not name.lower().startswith("nats-")}
    any_case = {name.lower(): value for name, value in headers.items()}
    content_type = headers.get(CONTENT_TYPE, any_case.get(CONTENT_TYPE))
    is_cloudevent = _CLOUDEVENTS_MARK in any_case or (content_type or "").lower().startswith(_CLOUDEVENTS_TYPE)
    event_id = headers.get(EVENT_ID)
    if event_id is None and MESSAGE_ID in sent and not is_cloudevent and not is_copy:
        event_id = decode(sent[MESSAGE_ID])
    return Incoming(
        event_id=event_id,
        event_type=headers.get(EVENT_TYPE),
        body=body,
        content_type=content_type,
        correlation_id=headers.get(CORRELATION_ID),
        headers=headers,
        attempts=count_in(sent, ATTEMPTS),
        deferrals=count_in(sent, DEFERRALS),
        destination=subject,
    )


def count_in(headers: Mapping[str, str], name: str) -> int:
    """The count in a header; 0 if its value is not a number."""
    value = headers.get(name, "")
    return min(int(value), _MAX_COUNT) if value.isascii() and value.isdigit() and len(value) < 20 else 0


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


class Copy(NamedTuple):
    """A message for another subject."""

    headers: bytes
    body: bytes
    complete: bool
    """Whether it has every header of ours; the reason of a failure may be shortened."""


def copied(
    message: PulledMessage, sent: Mapping[str, str], changed: Mapping[str, str | None], max_payload: int
) -> Copy:
    """A copy for another subject, with encoded headers of ours replaced or, if None, removed.

    Body and headers of the producer are all there. What the maximums of the server leave is for headers of ours, the
    most important ones first. The message id is stream, sequence and time of the original: JetStream stores the copy
    once.
    """
    original = f"{message.stream}:{message.sequence}:{message.stored_at}"
    ours = {name: sent[name] for name in _OURS if name in sent} | {MESSAGE_ID: original}
    wanted = {name: value for name, value in (ours | dict(changed)).items() if value is not None}
    lines = [
        _line(name, value)
        for name, value in sent.items()
        if name not in changed and name not in _OURS and not name.lower().startswith("nats-") and name.isascii()
    ]
    room = min(max_payload - len(message.body), MAX_HEADERS) - len(_FIRST_LINE) - 4 - sum(map(len, lines))
    complete = True
    for name in sorted(wanted, key=_OURS.index):
        line = _line(name, wanted[name])
        if name == REASON and len(line) > room:
            line = _shortened(line, room)
        if len(line) <= room:
            lines.append(line)
            room -= len(line)
        else:
            complete = False
    return Copy(b"".join((_FIRST_LINE, b"\r\n", *lines, b"\r\n")), message.body, complete)


def _line(name: str, value: str) -> bytes:
    return f"{name}: {value}\r\n".encode("utf-8", "surrogateescape")


def _shortened(line: bytes, size: int) -> bytes:
    """The beginning of an encoded header, without half a percent-encoded byte; empty if not even its name fits."""
    cut = line[: max(0, size - 2)]
    if b"%" in cut[-2:]:
        cut = cut[: cut.rindex(b"%")]
    return cut + b"\r\n" if b": " in cut else b""
