"""The state of an outbox at a glance, as `pillarbox status` shows it; cheap with a large backlog."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, Protocol

from pillarbox.admin.destinations import DestinationLoad
from pillarbox.admin.states import StateCounts
from pillarbox.core.statistics import COUNTED


class LaneView(NamedTuple):
    """A lane and its owner."""

    lane: int
    owner: str | None
    """The id of a relay, which may have crashed."""
    epoch: int
    crashes: int


class RelayView(NamedTuple):
    """A relay that is running, or has crashed and still has its entry."""

    id: str
    name: str
    host: str
    lease: float
    """Seconds left; negative once it ended."""
    breakers: Mapping[str, str]
    """Destination → state."""
    version: str = ""
    age: float = 0.0
    """Seconds since it started."""
    in_flight: int = 0
    """Messages that have been in flight for longer than a second."""
    draining: bool = False
    """Whether an operator asked it to drain."""
    stalled: str = ""
    """Why it makes no progress although it could, and what to do; "" while it does."""


class Overview(NamedTuple):
    """Pending events, dead letters, lanes and relays."""

    backlog: int
    """Pending messages."""
    oldest: float | None
    """Seconds since the oldest of them could have been sent: since it was recorded, or due; None if there is none."""
    exact: bool
    """False: more messages are pending than are counted, and both numbers are estimates."""
    dead: int
    """Dead letters; `COUNTED + 1` stands for that many or more."""
    lanes: list[LaneView]
    relays: list[RelayView]
    blocked: int = 0
    """Keys that are blocked until an operator decides; `COUNTED + 1` stands for that many or more."""
    oldest_event: str | None = None
    """The id of the event with the age `oldest`."""
    recorded: int = 0
    """The last sequence number that was assigned to a message."""


class ConsumerView(NamedTuple):
    """A consumer that has inbox records or statistics.

    Counts, last error and its time are of the last 24 hours; None without statistics.
    """

    name: str
    records: int
    """Inbox records of the consumer; `COUNTED + 1` stands for that many or more."""
    processed: int | None = None
    duplicates: int | None = None
    """Duplicates that were not handled again."""
    failures: int | None = None
    dead_lettered: int | None = None
    last_error: str | None = None
    last_failed_at: datetime | None = None


class Inspection(Protocol):
    """The state of outbox and inbox at a glance."""

    async def overview(self, *, counted: int = COUNTED) -> Overview:
        """Return backlog, dead letters, blocked keys, lanes and relays.

        Cheap whatever the backlog: no more than `counted` messages are counted one by one.
        """
        ...

    async def states(self) -> StateCounts:
        """Return how many events are in each state, in the order of `EventState`.

        Cheap whatever the backlog: at most `COUNTED + 1` messages of each state are counted one by one.
        """
        ...

    async def destinations(self) -> DestinationLoad:
        """Return what is pending for each destination and what was delivered lately, from a bounded number of rows."""
        ...

    async def relays(self) -> list[RelayView]:
        """Return the relays as `overview` shows them, in one statement."""
        ...

    async def consumers(self, *, limit: int = 100) -> list[ConsumerView]:
        """Return the consumers with inbox records or recent statistics, by name; cheap however many records exist."""
        ...
