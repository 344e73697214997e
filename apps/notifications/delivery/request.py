"""A delivery request: the validated event of the `delivery_` outbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

from apps.notifications.domain import Audience, Channel
from pillarbox import PermanentError
from pillarbox.transports.handlers import ReceivedEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRequest:
    """One notification to one user by one channel."""

    delivery_id: str
    """The event id, the same on every attempt, in characters that are valid in headers."""
    channel: Channel
    audience: Audience
    notification_id: int
    user_id: int
    event_type: str
    """The type of the business event."""
    title: str
    body: str

    @classmethod
    def read(cls, event: ReceivedEvent) -> Self:
        """Parse an event. Raises PermanentError if a field is missing or invalid."""
        payload: Any = event.payload
        try:
            return cls(
                delivery_id=quote(event.event_id, safe=""),
                channel=Channel(event.event_type.removeprefix("notification.").upper()),
                audience=Audience(payload["audience"]),
                notification_id=int(payload["notification_id"]),
                user_id=int(payload["user_id"]),
                event_type=str(payload["event_type"]),
                title=str(payload["title"]),
                body=str(payload["body"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise PermanentError(f"delivery {event.event_id} cannot be read: {error!r}") from None
