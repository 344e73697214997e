"""Layer 2: a listener for each audience turns messages into notifications, once for each user and channel.

listener.py    what all four do
audiences.py   the four, by name
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
