"""Messages as Kafka has them: headers are UTF-8 bytes, as in docs/reference/kafka.md, and the key is the ordering key.

A received message is read leniently, and passed on unchanged: a message that moves to another topic keeps its key, its
value and the headers of its producer, byte by byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple, cast

from pillarbox.core.clock import timestamp
from pillarbox.core.errors import PermanentError
from pillarbox.core.outcome import sanitize_error
from pillarbox.core.source import Incoming
from pillarbox.core.transport import Outgoing

EVENT_ID = "eventId"
EVENT_TYPE = "eventType"
CONTENT_TYPE = "content-type"
CORRELATION_ID = "correlationId"
ATTEMPTS = "pillarbox-attempts"
DEFERRALS = "pillarbox-deferrals"
REASON = "pillarbox-reason"
FIRST_FAILED_AT = "pillarbox-first-failed-at"
LAST_FAILED_AT = "pillarbox-last-failed-at"
QUEUE = "pillarbox-queue"
DUE = "pillarbox-due"
ORIGINAL = "pillarbox-original"
"""Topic, partition and offset of a message that could not be copied as a whole."""

ANY_PARTITION = -1
"""The client chooses: by the key, if there is one."""

Header = tuple[str, bytes | None]

_MAX_REASON_BYTES = 1000
_MAX_SHORT = 256
_MAX_HEADERS = 30
"""Headers, and bytes of each, that a dead letter without its body keeps; those that were added last are ours."""
_MAX_COUNT = 2**31 - 1
"""A producer can write any number; larger ones count as this."""


class Record(NamedTuple):
    """One message to produce, with its position in the batch. The client encodes texts as UTF-8."""

    position: int
    topic: str
    key: str | bytes | None
    value: bytes
    headers: Mapping[str, str] | Sequence[Header]
    partition: int = ANY_PARTITION


_record: Callable[[Iterable[Any]], Record] = partial(cast(Any, tuple).__new__, Record)
"""A record of its fields, in a third of the time of `Record(…)`."""


def record_of(position: int, topic: str, outgoing: Outgoing) -> Record:
    """The message as it is produced. Raises PermanentError if a text in it cannot be sent."""
    message, _, body, content_type, given, _, _ = outgoing
    key, headers = message.key, {**given, EVENT_ID: message.event_id, CONTENT_TYPE: content_type}
    names = "".join(headers)
    try:
        # confluent-kafka 2.16 ends the process over a lone surrogate, and cuts a name at a NUL.
        "".join((names, key or "", *headers.values())).encode()
    except UnicodeEncodeError as error:
        raise PermanentError(
            f"event {sanitize_error(message.event_id)} cannot be sent to Kafka: its id, key, content type or a header "
            f"is not UTF-8 ({error.reason}); correct the producer"
        ) from None
    if "\0" in names:
        raise PermanentError(
            f"event {message.event_id} cannot be sent to Kafka: the name of a header contains a NUL; rename it"
        )
    return _record((position, topic, key, body, headers, ANY_PARTITION))


def headers_of(message: Any) -> list[Header]:
    """The headers of a received message. Raises nothing: where the name of one is not UTF-8, confluent-kafka reads none
    of them, and a header of ours names the original."""
    try:
        return message.headers() or []
    except (SystemError, UnicodeDecodeError):
        return [(ORIGINAL, f"{message.topic()}/{message.partition()}/{message.offset()}".encode())]


def incoming_of(value: bytes | None, headers: Sequence[Header], topic: str) -> Incoming:
    """The message as consumers see it. Bytes that are not UTF-8 become lone surrogates, which checks of text reject."""
    texts = {name: raw.decode("utf-8", "surrogateescape") for name, raw in headers if raw is not None}
    return Incoming(
        event_id=texts.get(EVENT_ID, texts.get("ce_id")),
        event_type=texts.get(EVENT_TYPE, texts.get("ce_type")),
        body=value or b"",
        content_type=texts.get(CONTENT_TYPE),
        correlation_id=texts.get(CORRELATION_ID, texts.get("ce_correlationid")),
        headers=texts,
        attempts=_count(texts, ATTEMPTS),
        deferrals=_count(texts, DEFERRALS),
        destination=topic,
    )


def failed_headers(
    headers: Sequence[Header], incoming: Incoming, *, topic: str, reason: str, counted: bool, due: float | None
) -> list[Header]:
    """The headers after one more failure; `due`: the time in seconds since 1970 at which it is to be retried."""
    now = timestamp(datetime.now(UTC))
    first = incoming.headers.get(FIRST_FAILED_AT, now)
    added = {
        ATTEMPTS: str(incoming.attempts + counted),
        DEFERRALS: str(incoming.deferrals + (not counted)),
        REASON: reason.encode("utf-8", "backslashreplace")[:_MAX_REASON_BYTES].decode("utf-8", "ignore"),
        FIRST_FAILED_AT: first if len(first) <= len(now) and first.isascii() else now,
        LAST_FAILED_AT: now,
        QUEUE: incoming.headers.get(QUEUE, topic),
    }
    kept = [header for header in headers if header[0] not in added and header[0] != DUE]
    encoded: list[Header] = [(name, text.encode("utf-8", "surrogateescape")) for name, text in added.items()]
    return kept + encoded + ([] if due is None else [(DUE, str(round(due * 1000)).encode())])


def without_body(record: Record, original: str) -> Record:
    """What is left of a message that is too large for its dead-letter topic: its short headers, and where the original
    is."""
    given = [header for header in record.headers if isinstance(header, tuple) and len(header[1] or b"") <= _MAX_SHORT]
    key = record.key if record.key is not None and len(record.key) <= _MAX_SHORT else None
    return record._replace(key=key, value=b"", headers=[*given[-_MAX_HEADERS:], (ORIGINAL, original.encode())])


def due_of(headers: Iterable[Header]) -> float:
    """When a retried message is due, in seconds since 1970; 0: at once."""
    for name, raw in headers:
        if name == DUE and raw is not None and raw.isdigit() and len(raw) < 16:
            return int(raw) / 1000
    return 0.0


def _count(headers: Mapping[str, str], name: str) -> int:
    text = headers.get(name, "")
    return min(int(text), _MAX_COUNT) if text.isascii() and text.isdigit() and len(text) < 16 else 0
