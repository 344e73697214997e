"""The tables: what a database would hold, with the indexes that keep the reader off whatever waits.

Whoever touches them holds `lock`: a heartbeat lives in a thread of its own and a producer may be anywhere. Each kind of
waiting has its own index, and a row stands in exactly those that its state calls for; `put` and `take_out` see to it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import wraps
from itertools import count
from threading import RLock
from types import CoroutineType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast
from zlib import crc32

from pillarbox.admin.listing import Failure
from pillarbox.admin.requests import Action
from pillarbox.core.clock import Clock
from pillarbox.core.lane import InFlightMessage, RelayCard
from pillarbox.core.message import Held, KeyQueue, Message
from pillarbox.core.outcome import LONGEST_DELAY
from pillarbox.core.row import ConsumerStatistics, InboxRecord
from pillarbox.core.statistics import Sample
from pillarbox.core.store import Override
from pillarbox.stores.memory.ordered import Ordered

P = ParamSpec("P")
R = TypeVar("R")

Place = tuple[int, str]
Identity = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A row of the hot table: the message, and what only people want to know of it."""

    message: Message
    last_error: str | None = None
    first_failed_at: datetime | None = None

    @property
    def retry_count(self) -> int:
        """What people see: a message that a person moved counts a try, and nothing was tried."""
        return 0 if self.first_failed_at is None else self.message.failures

    def stands_in_the_way(self, now: datetime) -> bool:
        """Does it hold back later messages of its line?"""
        m = self.message
        if m.held is not None:
            return True
        return m.available_at is not None and (m.attempts + m.deferrals > 0 or m.available_at <= now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A row of the history."""

    stored: Stored
    published_at: datetime
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A row of the dead letters."""

    stored: Stored
    error: str
    dead_lettered_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A send of an event that failed."""

    event_id: str
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Processed:
    """A row of the ledger."""

    status: str
    created_at: datetime
    send_number: int | None
    """Which send is under way, or was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a person asked for."""

    action: Action
    identity: Identity
    delay: float
    by: str
    at: datetime


@dataclass(slots=True, kw_only=True)
class Relay:
    """A relay that lives, or whose death nobody has noticed yet."""

    card: RelayCard
    started_at: datetime
    lease_end: float
    """When its lease ends, on the monotonic clock."""
    in_flight: Sequence[InFlightMessage] = ()
    breakers: Mapping[str, str] = field(default_factory=dict[str, str])
    draining: bool = False
    stalled: str = ""


@dataclass(slots=True, kw_only=True)
class Destination:
    """What people set for a destination, and how it fares."""

    steering: Override
    next_attempt_at: datetime | None = None


@dataclass(slots=True, kw_only=True)
class LaneTable:
    """One lane: its owner, and the places of its messages by the way they wait."""

    owner: str | None = None
    epoch: int = 0
    crashes: int = 0
    ready: Ordered[Place] = field(default_factory=Ordered)
    scheduled: Ordered[tuple[datetime, int, str]] = field(default_factory=Ordered)
    parked: defaultdict[str, Ordered[Place]] = field(default_factory=lambda: defaultdict(Ordered))
    keys: defaultdict[str, Ordered[Place]] = field(default_factory=lambda: defaultdict(Ordered))
    """Key → places of its messages that are not ready, whatever their destination."""


class Tables:
    """Everything a store knows."""

    def __init__(self, *, lanes: int, clock: Clock) -> None:
        self.lock = RLock()
        self.lanes = [LaneTable() for _ in range(lanes)]
        self.waiting: dict[Identity, Stored] = {}
        self.places: dict[Place, Stored] = {}
        self.history: dict[int, Published] = {}
        self.dead: dict[int, DeadLetter] = {}
        self.attempts: list[Attempt] = []
        self.processed: dict[Identity, Processed] = {}
        """The ledger, by event and destination."""
        self.inbox: dict[InboxRecord, datetime] = {}
        self.admitting: dict[InboxRecord, object] = {}
        """Receipts of transactions that are still open, with whose each is."""
        self.consumer_statistics: list[tuple[datetime, ConsumerStatistics]] = []
        self.relays: dict[str, Relay] = {}
        self.requests: dict[int, Request] = {}
        self.carried_out: dict[int, Action] = {}
        """The requests that changed a message, by their number."""
        self.samples: list[Sample] = []
        self.destinations: dict[str, Destination] = {}
        self._clock = clock
        self._sequence = count(1)
        self.recorded = 0
        """Messages that were recorded so far."""

    def now(self) -> datetime:
        """The clock of this database."""
        return self._clock.now()

    def elapsed(self) -> float:
        """The monotonic clock, by which leases end."""
        return self._clock.monotonic()

    def living(self) -> Iterator[Relay]:
        """The relays whose lease runs."""
        now = self.elapsed()
        return (relay for relay in self.relays.values() if relay.lease_end > now)

    def after(self, seconds: float) -> datetime:
        """So many seconds from now, or before now if negative; at most as far as every calendar goes."""
        return self.now() + timedelta(seconds=max(-LONGEST_DELAY, min(seconds, LONGEST_DELAY)))

    def draw(self) -> int:
        """The next number: drawn once, never given back, like a database's sequence."""
        return next(self._sequence)

    def lane_of(self, key: str | None, event_id: str) -> int:
        return crc32((event_id if key is None else key).encode()) % len(self.lanes)

    def put(self, stored: Stored) -> None:
        """Add a row whose identity is free."""
        m = stored.message
        self.waiting[m.identity] = self.places[m.position] = stored
        lane = self.lanes[m.lane]
        if m.held is None and m.available_at is None:
            lane.ready.add(m.position)
            return
        if m.key is not None:
            lane.keys[m.key].add(m.position)
        if m.held is None and m.available_at is not None:
            lane.scheduled.add((m.available_at, *m.position))
        elif m.held == Held.PARKED:
            lane.parked[m.destination].add(m.position)

    def take_out(self, identity: Identity) -> Stored:
        """Remove a row that is there."""
        stored = self.waiting.pop(identity)
        m = stored.message
        del self.places[m.position]
        lane = self.lanes[m.lane]
        if m.held is None and m.available_at is None:
            lane.ready.remove(m.position)
            return stored
        if m.key is not None:
            lane.keys[m.key].remove(m.position)
            if not lane.keys[m.key]:
                del lane.keys[m.key]
        if m.held is None and m.available_at is not None:
            lane.scheduled.remove((m.available_at, *m.position))
        elif m.held == Held.PARKED:
            lane.parked[m.destination].remove(m.position)
        return stored

    def dead_letter(self, stored: Stored, error: str) -> None:
        """Add a dead letter; the row is no longer in the hot table."""
        self.dead[self.draw()] = DeadLetter(stored=stored, error=error, dead_lettered_at=self.now())

    def note(self, identity: Identity, status: str, *, send_number: int | None = None) -> bool:
        """Write to the ledger; False, and nothing, if it knows of a success."""
        known = self.processed.get(identity)
        if known is not None and known.status == "SUCCESS":
            return False
        self.processed[identity] = Processed(
            status=status, created_at=self.now() if known is None else known.created_at, send_number=send_number
        )
        return True

    def of_key(self, lane: int, key: str) -> Iterator[Stored]:
        """The rows of a key that are not ready, in order of their place."""
        return (self.places[place] for place in self.lanes[lane].keys.get(key, ()))

    def earlier(self, slot: KeyQueue, before: int) -> bool:
        """Does anything stand in the way of place `before` in this line?"""
        now = self.now()
        for stored in self.of_key(slot.lane, slot.key):
            m = stored.message
            if m.id >= before:
                return False
            if concerns(slot.destination, m) and stored.stands_in_the_way(now):
                return True
        return False

    def waiting_in(self, slot: KeyQueue) -> Iterator[Stored]:
        """What waits behind in this line, up to the first message that still heads it."""
        now = self.now()
        for stored in self.of_key(slot.lane, slot.key):
            m = stored.message
            if m.destination == slot.destination and m.held == Held.WAITING:
                yield stored
            elif concerns(slot.destination, m) and stored.stands_in_the_way(now):
                return


def concerns(destination: str, message: Message) -> bool:
    """Lines of one key are apart, except that '' counts for all, in both directions."""
    return message.destination in (destination, "") or destination == ""


class Facet(Protocol):
    """A part of a store: it has the tables."""

    _tables: Tables


F = TypeVar("F", bound=Facet)


def verb(act: Callable[Concatenate[F, P], R]) -> Callable[Concatenate[F, P], CoroutineType[Any, Any, R]]:
    """A verb of a facet: atomic in itself, and giving way before and after, so that others come in between."""

    @wraps(act)
    async def turn(facet: F, /, *args: P.args, **kwargs: P.kwargs) -> R:
        await asyncio.sleep(0)
        with facet._tables.lock:  # pyright: ignore[reportPrivateUsage]  # it decorates the methods of facets
            result = act(facet, *args, **kwargs)
        await asyncio.sleep(0)
        return result

    # Pyright gives an `async def` this type, and compares it with the protocols; mypy does not.
    return cast("Callable[Concatenate[F, P], CoroutineType[Any, Any, R]]", turn)
