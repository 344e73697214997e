"""How an outbox fares at a glance: what `pillarbox status` shows, from queries that stay cheap with a large backlog."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, Protocol

from pillarbox.core.statistics import COUNTED


class LaneView(NamedTuple):
    """A lane and who works it."""

    lane: int
    owner: str | None
    """The id of a relay, which may be dead already."""
    epoch: int
    crashes: int


class RelayView(NamedTuple):
    """A relay that lives, or whose death nobody has noticed yet."""

    id: str
    name: str
    host: str
    lease: float
    """Seconds left; negative once it ended."""
    breakers: Mapping[str, str]
    """Destination → state."""
    version: str = ""
    age: float = 0.0
    """Seconds since it began to live."""
    in_hand: int = 0
    """Messages that it has had in hand for longer than a second."""
    draining: bool = False
    """It was asked to drain."""
    stalled: str = ""
    """Why it makes no progress although it could, and what to do; "" while it does."""


class Overview(NamedTuple):
    """What waits, what was given up on, and who works."""

    backlog: int
    """Messages that are not delivered yet."""
    oldest: float | None
    """Seconds since the oldest of them could have left: since it was recorded, or was due; None if there is none."""
    exact: bool
    """False: there are more than are counted, and both figures are estimates."""
    dead: int
    """Dead letters; `COUNTED + 1` stands for that many or more."""
    lanes: list[LaneView]
    relays: list[RelayView]
    blocked: int = 0
    """Keys that stand still until a person decides; `COUNTED + 1` stands for that many or more."""
    oldest_event: str | None = None
    """The id of the one whose age `oldest` is."""
    recorded: int = 0
    """The last sequence number that was assigned to a message."""


class ConsumerView(NamedTuple):
    """A consumer that has receipts in the inbox or tallied what it met.

    Counts, last error and its time are of the tallies of the last 24 hours; None where there are none.
    """

    name: str
    receipts: int
    """Events that it has admitted and that are still remembered; `COUNTED + 1` stands for that many or more."""
    handled: int | None = None
    repeated: int | None = None
    """Duplicates that were caught."""
    failed: int | None = None
    given_up: int | None = None
    last_error: str | None = None
    last_failed_at: datetime | None = None


class Inspection(Protocol):
    """How the outbox and the inbox are doing at a glance."""

    async def overview(self, *, counted: int = COUNTED) -> Overview:
        """Return backlog, dead letters, blocked keys, lanes and relays.

        Cheap whatever the backlog: no more than `counted` messages are counted one by one.
        """
        ...

    async def relays(self) -> list[RelayView]:
        """Return the relays as `overview` shows them, in one statement."""
        ...

    async def consumers(self, *, limit: int = 100) -> list[ConsumerView]:
        """Return the consumers with inbox records or recent statistics, by name; cheap however many records exist."""
        ...
