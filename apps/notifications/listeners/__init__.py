"""Layer 2: one listener per audience turns each message into one notification per user and channel.

listener.py    the base class
audiences.py   the four listeners
"""

from apps.notifications.listeners.audiences import (
    LISTENERS,
    AdminNotificationListener,
    AgencyUserNotificationListener,
    CustomerNotificationListener,
    RestaurantNotificationListener,
)
from apps.notifications.listeners.listener import NotificationListener

__all__ = [
    "LISTENERS",
    "AdminNotificationListener",
    "AgencyUserNotificationListener",
    "CustomerNotificationListener",
    "NotificationListener",
    "RestaurantNotificationListener",
]
