"""What is asked of a channel: the event of the `delivery_` outbox, read strictly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

from apps.notifications.words import Audience, Channel
from pillarbox import PermanentError
from pillarbox.transports.handlers import ReceivedEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRequest:
    """One notification to one user by one channel."""

    delivery_id: str
    """The event's id, the same on every try, in characters that every header can carry."""
    channel: Channel
    audience: Audience
    notification_id: int
    user_id: int
    event_type: str
    """Of the business event that the user is told of."""
    title: str
    body: str

    @classmethod
    def read(cls, event: ReceivedEvent) -> Self:
        """Raises PermanentError for an event that no listener would have recorded."""
        said: Any = event.payload
        try:
            return cls(
                delivery_id=quote(event.event_id, safe=""),
                channel=Channel(event.event_type.removeprefix("notification.").upper()),
                audience=Audience(said["audience"]),
                notification_id=int(said["notification_id"]),
                user_id=int(said["user_id"]),
                event_type=str(said["event_type"]),
                title=str(said["title"]),
                body=str(said["body"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise PermanentError(f"delivery {event.event_id} cannot be read: {error!r}") from None
