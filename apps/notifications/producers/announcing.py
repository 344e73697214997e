"""Creates the events of all producers: for an audience, one of its aggregates, and all or one of its users.

`recipientType` is a header of the event; the relay copies it into the message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.notifications.domain import Audience, RecipientType
from pillarbox import Event, Outbox

RECIPIENT_TYPE = "recipientType"

outbox = Outbox()


def announcement(
    event_type: str,
    payload: Mapping[str, Any],
    *,
    audience: Audience,
    aggregate_id: int,
    to: RecipientType = RecipientType.BROADCAST,
) -> Event:
    """Create an event for an audience. For a SINGLE recipient the payload must contain `user_id`."""
    return Event(
        event_type,
        dict(payload),
        aggregate_type=audience,
        aggregate_id=str(aggregate_id),
        headers={RECIPIENT_TYPE: to},
    )
