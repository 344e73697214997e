"""The queries with which a relay fetches messages from a store: which ones, and how many at most."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.message import EarlierQuery, KeyQueue, Message

MAX_BYTES = 8 * 1024 * 1024
"""The most bytes of payload and headers that one fetch returns, whatever its limit."""


def check_range(recorded_after: datetime | None, recorded_before: datetime | None) -> None:
    """Raise ConfigurationError unless both have a time zone and the one is before the other."""
    for name, time in (("recorded_after", recorded_after), ("recorded_before", recorded_before)):
        if time is not None and time.utcoffset() is None:
            raise ConfigurationError(f"{name} has no time zone, so its time is ambiguous; pass a datetime with tzinfo")
    if recorded_after and recorded_before and recorded_after >= recorded_before:
        raise ConfigurationError(
            f"recorded_after {recorded_after} is not before recorded_before {recorded_before}: "
            "the range is empty; swap them or widen it"
        )


class Bounds(NamedTuple):
    """The limits of one fetch, and what it leaves out.

    With `recorded_after` or `recorded_before` (each with a time zone) a fetch returns only messages that were recorded
    from the one on and before the other. To keep the order of a key, it also leaves out every message after the first
    one of that key outside the range; per destination, where '' counts for all.
    """

    limit: int = 500
    quota: int = 500
    """The most messages of one lane (for `NextInQueues`: of one ordering queue), so that a hot key does not use up the
    whole limit."""
    max_bytes: int = MAX_BYTES
    """Payload and headers; the database applies it before it transfers rows."""
    alone: bool = True
    """If the first message is larger than `max_bytes`, return it alone."""
    in_flight: Collection[tuple[int, str]] = ()
    """Positions of messages to leave out, see `Message.position`. A fetch never continues from a position."""
    recorded_after: datetime | None = None
    recorded_before: datetime | None = None

    def covers(self, recorded_at: datetime) -> bool:
        """Whether a message recorded at this time is in the range."""
        return (self.recorded_after is None or recorded_at >= self.recorded_after) and (
            self.recorded_before is None or recorded_at < self.recorded_before
        )


class Fetched(list[Message]):
    """The messages of one fetch."""

    left_out: Message | None = None
    """The first one that did not fit into `max_bytes`, without its payload and headers; more may follow it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Messages that can be sent now, by sequence."""

    lanes: Sequence[int]
    bounds: Bounds = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Retries and delayed events whose time has come, the longest due first."""

    lanes: Sequence[int]
    bounds: Bounds = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """Messages parked for these destinations, by sequence."""

    lanes: Sequence[int]
    destinations: Sequence[str]
    bounds: Bounds = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class NextInQueues:
    """The next waiting messages of these ordering queues, where nothing precedes them any more, by sequence."""

    queues: Sequence[KeyQueue]
    bounds: Bounds = Bounds()


FetchQuery = Ready | Due | Parked | NextInQueues
"""Which pending messages to fetch."""


class OrphanedQueues(NamedTuple):
    """A step of the search for ordering queues whose waiting messages have nothing before them any more."""

    queues: list[KeyQueue]
    after: KeyQueue | None
    """Where the next step continues; None once every queue was visited."""


class Messages(Protocol):
    """Fetches messages. Reads take no locks."""

    async def fetch(self, query: FetchQuery) -> Fetched:
        """Fetch messages within the bounds, each ordering queue in order. If a bound ends the fetch, the earlier lanes
        of the query come first."""
        ...

    async def earlier(self, queries: Sequence[EarlierQuery]) -> list[bool]:
        """For each query: is an earlier message of that key pending for that destination, or for ''?"""
        ...

    async def orphaned_queues(
        self, lanes: Sequence[int], *, limit: int, after: KeyQueue | None = None
    ) -> OrphanedQueues:
        """Visit up to `limit` ordering queues beyond `after`; returns those that nothing holds back any more."""
        ...

    async def parked_destinations(self, lanes: Sequence[int]) -> list[str]:
        """The destinations for which messages of these lanes are parked, whether or not this relay knows them."""
        ...
