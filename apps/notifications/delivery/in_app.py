"""IN_APP: the notification becomes visible to whoever follows the user's live feed.

There is nothing to send. The row that the log writes is the feed, and its id is the place in it.
"""

from __future__ import annotations

from apps.notifications.delivery.log import Recipient
from apps.notifications.delivery.request import DeliveryRequest


def show(request: DeliveryRequest, to: Recipient) -> None:
    """The row in the log does it; followers find it there: see `api/live.py`."""
