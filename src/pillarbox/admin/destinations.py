"""What is pending for each destination, how fast events arrive, and who set the overrides.

A store groups the messages that were recorded first and last, `SCANNED` at most. If more are pending, the groups are a
sample.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from pillarbox.admin.states import EventState
from pillarbox.core.statistics import COUNTED

SCANNED = COUNTED
"""Pending messages that are grouped: half of them the first recorded, half of them the last."""
RECENT = 300.0
"""Seconds over which arrivals are counted."""


class PendingGroup(NamedTuple):
    """Pending messages of one destination in one state; those without a route also by their types."""

    destination: str
    """'' if the relay has not found a route yet."""
    event_type: str
    """'' if there is a route."""
    aggregate_type: str | None
    state: EventState
    messages: int
    oldest: float | None
    """Seconds since the oldest of them could have been sent; None if all are for later."""
    recent: int
    """How many of them were recorded in the last `RECENT` seconds."""
    first_recent: float | None
    """Seconds since the first of the recent ones."""


class RecentDelivery(NamedTuple):
    """Messages of one destination that were recorded in the last `RECENT` seconds and are delivered."""

    destination: str
    messages: int
    first: float
    """Seconds since the first of them was recorded."""


class OverrideChange(NamedTuple):
    """Who changed the override of a destination last, and when."""

    destination: str
    by: str
    at: datetime


class DestinationLoad(NamedTuple):
    """What is pending for the destinations, and what was delivered lately."""

    pending: list[PendingGroup]
    delivered: list[RecentDelivery]
    """Grouped from at most `SCANNED // 2` messages, the last recorded."""
    changes: list[OverrideChange]

    @property
    def scanned(self) -> int:
        """Pending messages that were grouped."""
        return sum(group.messages for group in self.pending)
