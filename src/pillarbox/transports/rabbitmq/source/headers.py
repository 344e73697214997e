"""What is written on a message: read when it comes, written when it is moved.

A moved message is the same message: its body, its properties and the producer's headers stay, byte by byte. What the
broker would act upon again is taken off, because it was meant for the first way: a lifetime of its own, further routing
keys, the name of the user who published it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pillarbox.core.clock import timestamp
from pillarbox.core.source import Incoming
from pillarbox.transports.rabbitmq.received import Encoded, Received

ATTEMPTS = "pillarbox-attempts"
TRIES = "pillarbox-tries"
REASON = "pillarbox-reason"
FIRST_FAILED_AT = "pillarbox-first-failed-at"
LAST_FAILED_AT = "pillarbox-last-failed-at"
QUEUE = "pillarbox-queue"

_BROKERS_OWN = (b"x-death", b"x-delivery-count", b"CC", b"BCC")
_BROKERS_OWN_BEGIN = (b"x-first-death-", b"x-last-death-")
_KEPT = (
    "content_type",
    "content_encoding",
    "priority",
    "correlation_id",
    "reply_to",
    "message_id",
    "timestamp",
    "type",
    "app_id",
)
_AROUND_PROPERTIES = 20
"""Bytes of a header frame beside the properties."""
_LONGEST_REASON = 1000
"""Bytes: it fits with everything else into the smallest frame there is."""
_MOST_COUNTED = 2**31 - 1
"""A producer can write any number; it is no reason to fail."""


def incoming_of(properties: Received, body: bytes) -> Incoming:
    """A message as it came; headers that are no text are written as one where that has a meaning, else left out."""
    headers = properties.headers
    return Incoming(
        event_id=properties.message_id,
        event_type=properties.type,
        body=body,
        content_type=properties.content_type,
        correlation_id=properties.correlation_id,
        headers={name: str(value) for name, value in headers.items() if isinstance(value, (str, int, float))},
        attempts=count_in(headers, ATTEMPTS),
        deferrals=count_in(headers, TRIES),
    )


def delivery_count(properties: Received, *, redelivered: bool) -> int:
    """How often it was given out before and never answered; a classic queue knows only whether it was."""
    return max(count_in(properties.headers, "x-delivery-count"), int(redelivered))


def failed(
    properties: Received, incoming: Incoming, *, queue: str, reason: str, counted: bool, frame_max: int
) -> Encoded:
    """Its properties after one more failure."""
    now = timestamp(datetime.now(UTC))
    first = properties.headers.get(FIRST_FAILED_AT)
    notes: dict[str, str | int] = {
        ATTEMPTS: incoming.attempts + counted,
        TRIES: incoming.deferrals + (not counted),
        REASON: reason.encode("utf-8", "backslashreplace")[:_LONGEST_REASON].decode("utf-8", "ignore"),
        FIRST_FAILED_AT: first if isinstance(first, str) and len(first) <= len(now) else now,
        LAST_FAILED_AT: now,
        QUEUE: queue,
    }
    return moved(properties, notes, frame_max=frame_max)


def moved(properties: Received, notes: Mapping[str, str | int] | None = None, *, frame_max: int) -> Encoded:
    """Its properties on the way to another queue; a frame holds them."""
    return properties.passed_on(notes or {}, keep=_KEPT, drop=_is_brokers_own, most=frame_max - _AROUND_PROPERTIES)


def count_in(headers: Mapping[str, Any], name: str) -> int:
    """A number of times, whatever somebody wrote there."""
    value = headers.get(name)
    return min(value, _MOST_COUNTED) if type(value) is int and value > 0 else 0


def _is_brokers_own(name: bytes) -> bool:
    return name in _BROKERS_OWN or name.startswith(_BROKERS_OWN_BEGIN)
