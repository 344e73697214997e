"""The words that every layer and every table shares: who is told, of what, and by which channel."""

from __future__ import annotations

from enum import StrEnum


class Audience(StrEnum):
    """Whom an event is for: the aggregate type of an event, and a queue, a listener and a table of its own."""

    RESTAURANT = "RESTAURANT"
    CUSTOMER = "CUSTOMER"
    AGENCY = "AGENCY"
    ADMIN = "ADMIN"

    @property
    def queue(self) -> str:
        """The queue of its listener, and the routing key that leads there."""
        return f"notification.{self.lower()}"


class Channel(StrEnum):
    """How a user is told."""

    EMAIL = "EMAIL"
    PUSH = "PUSH"
    SMS = "SMS"
    IN_APP = "IN_APP"


class RecipientType(StrEnum):
    """How many of an audience are told."""

    BROADCAST = "BROADCAST"
    """Every user of the aggregate."""
    SINGLE = "SINGLE"
    """The one user whom the payload names as `user_id`."""


EVERY_EVENT = "*"
"""Stands for all event types in a preference and in a default; the type itself wins over it."""
