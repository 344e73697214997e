"""The four listeners. Each is a consumer of its own: its receipts say nothing about the others'."""

from __future__ import annotations

from apps.notifications.listeners.listener import NotificationListener
from apps.notifications.words import Audience


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
