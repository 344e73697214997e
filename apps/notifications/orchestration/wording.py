"""Title and body of a notification, by event type."""

from __future__ import annotations

from typing import NamedTuple

from apps.notifications.message import NotificationMessage


class Wording(NamedTuple):
    """Title and body; fields of the payload in braces."""

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
    """The wording of a message. If the event type or a field is unknown, a generic wording with the event type."""
    wording = WORDINGS.get(message.event_type)
    try:
        if wording is not None:
            return Wording(wording.title, wording.body.format_map(message.payload))
    except KeyError:
        pass
    what = message.event_type.replace("_", " ").capitalize()
    return Wording(what, f"{what}: {message.audience.lower()} {message.aggregate_id}.")
