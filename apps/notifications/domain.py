"""Audiences, channels and recipient types, shared by all layers and tables."""

from __future__ import annotations

from enum import StrEnum


class Audience(StrEnum):
    """The recipients of an event, given by its aggregate type. Each audience has its own queue, listener and table."""

    RESTAURANT = "RESTAURANT"
    CUSTOMER = "CUSTOMER"
    AGENCY = "AGENCY"
    ADMIN = "ADMIN"

    @property
    def queue(self) -> str:
        """The queue of its listener; also the routing key."""
        return f"notification.{self.lower()}"


class Channel(StrEnum):
    """A way to reach a user."""

    EMAIL = "EMAIL"
    PUSH = "PUSH"
    SMS = "SMS"
    IN_APP = "IN_APP"


class RecipientType(StrEnum):
    """Whether an event is for all users of an aggregate or for one."""

    BROADCAST = "BROADCAST"
    """Every user of the aggregate."""
    SINGLE = "SINGLE"
    """The user that the payload names as `user_id`."""


EVERY_EVENT = "*"
"""Stands for all event types in preferences and defaults; a specific event type takes precedence."""
