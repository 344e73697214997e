"""IN_APP: publishes the notification in the user's live feed.

There is nothing to send: the row in the delivery log is the feed entry, and its id is the position in the feed.
"""

from __future__ import annotations

from apps.notifications.delivery.log import Recipient
from apps.notifications.delivery.request import DeliveryRequest


def show(request: DeliveryRequest, to: Recipient) -> None:
    """Does nothing: the live feed reads the delivery log (see `api/live.py`)."""
