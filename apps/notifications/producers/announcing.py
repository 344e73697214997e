"""What the events of all producers have in common: an audience, one of its aggregates, and how many of it are told.

`recipientType` travels as a header; the relay puts it into the message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.notifications.words import Audience, RecipientType
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
    """An event for an audience. One for a SINGLE user has their `user_id` in its payload."""
    return Event(
        event_type,
        dict(payload),
        aggregate_type=audience,
        aggregate_id=str(aggregate_id),
        headers={RECIPIENT_TYPE: to},
    )
