"""What a user reads, for each type of event."""

from __future__ import annotations

from typing import NamedTuple

from apps.notifications.message import NotificationMessage


class Wording(NamedTuple):
    """A line and a sentence; fields of the payload in braces."""

    title: str
    body: str


WORDINGS = {
    "RESERVATION_REQUESTED": Wording(
        "New reservation", "{guest_name} asks for a table for {party_size} at {reserved_for}."
    ),
    "ORDER_CREATED": Wording("Order received", "We have received your order {order_id}."),
    "USER_REGISTERED": Wording("New user", "{name} has registered with {email}."),
}


def wording_of(message: NotificationMessage) -> Wording:
    """Its wording, filled in. An event without one, or without the fields it needs, is told by its type."""
    wording = WORDINGS.get(message.event_type)
    try:
        if wording is not None:
            return Wording(wording.title, wording.body.format_map(message.payload))
    except KeyError:
        pass
    what = message.event_type.replace("_", " ").capitalize()
    return Wording(what, f"{what}: {message.audience.lower()} {message.aggregate_id}.")
