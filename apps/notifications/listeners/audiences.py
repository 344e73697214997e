"""The four listeners. Each is a separate consumer with its own inbox records."""

from __future__ import annotations

from apps.notifications.domain import Audience
from apps.notifications.listeners.listener import NotificationListener


class RestaurantNotificationListener(NotificationListener):
    audience = Audience.RESTAURANT


class CustomerNotificationListener(NotificationListener):
    audience = Audience.CUSTOMER


class AgencyUserNotificationListener(NotificationListener):
    audience = Audience.AGENCY


class AdminNotificationListener(NotificationListener):
    audience = Audience.ADMIN


LISTENERS: dict[Audience, type[NotificationListener]] = {
    listener.audience: listener
    for listener in (
        RestaurantNotificationListener,
        CustomerNotificationListener,
        AgencyUserNotificationListener,
        AdminNotificationListener,
    )
}
