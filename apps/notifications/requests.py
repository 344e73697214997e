"""The delivery requests of layer 2: one event in the `delivery_` outbox for every new notification.

Event types are `notification.email`, `.push`, `.sms` and `.in_app`. The key is channel and user, so that a user's
notifications arrive in order on each channel and no user waits for another.
"""

from __future__ import annotations

from uuid import UUID, uuid5

from apps.notifications.database import DELIVERY_TABLES
from apps.notifications.domain import Audience, Channel
from apps.notifications.message import NotificationMessage
from apps.notifications.orchestration.orchestrator import Notification
from apps.notifications.orchestration.wording import Wording
from pillarbox import Event, Outbox

outbox = Outbox(tables=DELIVERY_TABLES)

_DELIVERIES = UUID("6f1d4c0e-5f6b-4d0a-9a53-2f6f5b1c7e11")


def event_type_of(channel: Channel) -> str:
    return f"notification.{channel.lower()}"


def delivery_id(audience: Audience, event_id: str, user_id: int, channel: Channel) -> str:
    """The event id of a delivery, derived from the notification, so that it can be found in the outbox."""
    return str(uuid5(_DELIVERIES, f"{audience}:{user_id}:{channel}:{event_id}"))


def delivery_of(
    message: NotificationMessage, wording: Wording, notification: Notification, *, notification_id: int
) -> Event:
    """A request to deliver a notification, not before the user's quiet hours end."""
    return Event(
        event_type_of(notification.channel),
        {
            "audience": message.audience,
            "notification_id": notification_id,
            "event_id": message.event_id,
            "user_id": notification.user_id,
            "event_type": message.event_type,
            "title": wording.title,
            "body": wording.body,
        },
        event_id=delivery_id(message.audience, message.event_id, notification.user_id, notification.channel),
        aggregate_type=message.audience,
        aggregate_id=str(notification_id),
        key=f"{notification.channel}:{notification.user_id}",
        available_at=notification.deliver_after,
    )
