"""The message between layers 1 and 2. An invalid message is dead-lettered at once, because a retry cannot succeed.

It has two forms. On RabbitMQ the body is the relay's envelope, or the same JSON of another producer: without properties
the id and the type are read from the body, and a body that contradicts its properties is rejected. In one process the
body is the payload, unless the destination is configured otherwise, and the other fields are in the headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from apps.notifications.domain import Audience, RecipientType
from pillarbox import PermanentError
from pillarbox.inbox import ConsumedEvent

HIGHEST_ID = 2**63 - 1

W = TypeVar("W", Audience, RecipientType)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationMessage:
    """An event and its audience. The listener resolves recipients and channels."""

    event_id: str
    event_type: str
    audience: Audience
    aggregate_id: int
    recipient_type: RecipientType
    payload: Mapping[str, Any]

    @classmethod
    def read(cls, event: ConsumedEvent) -> Self:
        """Parse a message. Raises PermanentError with the event and the field if it is invalid."""
        try:
            facts = _enveloped(event) if _is_envelope(event.payload) else _bare(event)
            message = cls(
                event_id=event.event_id,
                event_type=event.event_type,
                audience=_word(Audience, "aggregate_type", facts.get("aggregate_type")),
                aggregate_id=_aggregate_id(facts),
                recipient_type=_recipient_type(facts.get("recipientType")),
                payload=_object("payload", facts.get("payload")),
            )
            if message.recipient_type is RecipientType.SINGLE:
                _number("payload.user_id", message.payload.get("user_id"))
        except ValueError as error:
            raise PermanentError(f"message {event.event_id} is not a notification: {error}") from None
        return message

    @property
    def user_id(self) -> int:
        """The recipient of a SINGLE message."""
        return _number("payload.user_id", self.payload.get("user_id"))


def _is_envelope(body: object) -> bool:
    return isinstance(body, Mapping) and "event_id" in body and "payload" in body


def _enveloped(event: ConsumedEvent) -> Mapping[str, Any]:
    for name, outside in (("event_id", event.event_id), ("event_type", event.event_type)):
        if (inside := event.payload.get(name)) is not None and str(inside) != outside:
            raise ValueError(f"{name} is {inside!r} in the body and {outside!r} in the properties")
    return {"recipientType": event.headers.get("recipientType"), **event.payload}


def _bare(event: ConsumedEvent) -> Mapping[str, Any]:
    return {
        "aggregate_type": event.aggregate_type,
        "aggregate_id": event.aggregate_id,
        "recipientType": event.headers.get("recipientType"),
        "payload": event.payload,
    }


def _recipient_type(value: object) -> RecipientType:
    """The default is BROADCAST."""
    return RecipientType.BROADCAST if value is None else _word(RecipientType, "recipientType", value)


def _aggregate_id(facts: Mapping[str, Any]) -> int:
    """Accepts the older name `restaurant_id`, too."""
    name = "aggregate_id" if facts.get("aggregate_id") is not None else "restaurant_id"
    if facts.get(name) is None:
        raise ValueError("aggregate_id is missing")
    return _number(name, facts[name])


def _number(name: str, value: object) -> int:
    """A whole number, also as text, because headers are text."""
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= HIGHEST_ID:
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    return value


def _word(words: type[W], name: str, value: object) -> W:
    try:
        return words(str(value))
    except ValueError:
        raise ValueError(f"{name} must be one of {', '.join(words)}, not {value!r}") from None


def _object(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be an object, not {value!r}")
    return value
