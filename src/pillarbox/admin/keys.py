"""Ordering keys: which are blocked, and which have the most pending messages."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol

from pillarbox.admin.listing import Position
from pillarbox.admin.states import EventState
from pillarbox.core.message import Held, Status

WAITING_COUNTED = 1_000
"""Messages of one key that are counted as waiting."""
QUEUES_SCANNED = 1_000
"""Ordering queues with waiting messages that are searched for those whose first message waits for its retry."""
SAMPLED = 10_000
"""Messages among which the busiest keys are searched: those that were recorded first."""
NEXT_SCANNED = 1_000
"""Messages that no relay has fetched yet, and dead letters of a key, that are searched for the next ones of the key."""


class BlockedKey(NamedTuple):
    """A key whose first pending message holds it back: an operator must decide, or it waits for its retry."""

    key: str | None
    destination: str
    event_id: str
    event_type: str
    error: str | None
    since: datetime
    waiting: int
    """Messages that are known to wait for it; `WAITING_COUNTED + 1` stands for that many or more."""
    next_retry_at: datetime | None = None
    """When the relay retries the first message; None: an operator must decide."""


class BusiestKey(NamedTuple):
    """A key and how many of the sampled messages have it."""

    key: str
    pending: int


class FirstPending(NamedTuple):
    """The first pending message of an ordering queue, for which the others wait."""

    event_id: str
    destination: str
    event_type: str
    held: Held | None
    """`BLOCKED`: an operator must decide; `PARKED`: its destination is not available; None: it waits for its retry."""
    next_retry_at: datetime | None


class Neighbour(NamedTuple):
    """An event next to another in its key."""

    recorded_at: datetime
    id: int
    destination: str
    event_id: str
    state: EventState
    """As its row has it: `in_flight` is not known here."""
    event_type: str

    @property
    def status(self) -> Status:
        return self.state.status


class QueueView(NamedTuple):
    """An ordering queue around one position."""

    first: FirstPending | None
    """The message for which the message at this position waits; None if it waits for none."""
    later: list[Neighbour]
    """The next events, in order."""


class Keys(Protocol):
    """Finds what holds keys back, from a bounded number of rows."""

    async def blocked(self, *, limit: int = 100) -> list[BlockedKey]:
        """Return keys that are held back.

        First come keys for which an operator must decide, the newest first. Then come, among `QUEUES_SCANNED` queues,
        keys whose first message waits for its retry while others wait for it; the longest wait first.
        """
        ...

    async def busiest(self, *, limit: int = 20) -> list[BusiestKey]:
        """Return the keys with the most messages among the first `SAMPLED` pending ones."""
        ...

    async def queue(self, key: str, at: Position, *, limit: int = 5) -> QueueView:
        """Return the message for which a position of this key waits, and the next few events after the position.

        Of pending events, those for the same destination or without a route yet count. Delivered and dead-lettered
        events count whatever their destination.
        """
        ...
