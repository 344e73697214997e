"""What is written on a message: read when it comes, written when it is moved.

A moved message is the same message: its body, its properties and the producer's headers stay. What the broker would act
upon again is taken off, because it was meant for the first way: a lifetime of its own, further routing keys, the name
of the user who published it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pillarbox.core.source import Incoming
from pillarbox.transports.rabbitmq.driver import BasicProperties

ATTEMPTS = "pillarbox-attempts"
TRIES = "pillarbox-tries"
REASON = "pillarbox-reason"
FIRST_FAILED_AT = "pillarbox-first-failed-at"
LAST_FAILED_AT = "pillarbox-last-failed-at"
QUEUE = "pillarbox-queue"

_BROKERS_OWN = ("x-death", "x-delivery-count", "x-first-death-", "x-last-death-", "CC", "BCC")


def incoming_of(properties: BasicProperties, body: bytes) -> Incoming:
    """A message as it came; headers that are no text are written as one where that has a meaning, else left out."""
    headers = properties.headers or {}
    return Incoming(
        event_id=properties.message_id,
        event_type=properties.type,
        body=body,
        content_type=properties.content_type,
        correlation_id=properties.correlation_id,
        headers={name: str(value) for name, value in headers.items() if isinstance(value, (str, int, float))},
        attempts=_count(headers, ATTEMPTS),
        tries=_count(headers, TRIES),
    )


def delivery_count(properties: BasicProperties, *, redelivered: bool) -> int:
    """How often it was given out before and never answered; a classic queue knows only whether it was."""
    headers = properties.headers or {}
    return max(_count(headers, "x-delivery-count"), int(redelivered))


def failed(
    properties: BasicProperties, incoming: Incoming, *, queue: str, reason: str, charge: bool
) -> BasicProperties:
    """Its properties after one more failure."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    headers = properties.headers or {}
    return moved(
        properties,
        {
            ATTEMPTS: incoming.attempts + charge,
            TRIES: incoming.tries + (not charge),
            REASON: reason,
            FIRST_FAILED_AT: headers.get(FIRST_FAILED_AT, now),
            LAST_FAILED_AT: now,
            QUEUE: queue,
        },
    )


def moved(properties: BasicProperties, notes: Mapping[str, Any] | None = None) -> BasicProperties:
    """Its properties on the way to another queue."""
    kept = {name: value for name, value in (properties.headers or {}).items() if not name.startswith(_BROKERS_OWN)}
    return BasicProperties(
        content_type=properties.content_type,
        content_encoding=properties.content_encoding,
        headers={**kept, **(notes or {})},
        delivery_mode=2,
        priority=properties.priority,
        correlation_id=properties.correlation_id,
        reply_to=properties.reply_to,
        message_id=properties.message_id,
        timestamp=properties.timestamp,
        type=properties.type,
        app_id=properties.app_id,
    )


def _count(headers: Mapping[str, Any], name: str) -> int:
    value = headers.get(name)
    return value if isinstance(value, int) and value > 0 else 0
