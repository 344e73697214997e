"""The tables that a database would have, with indexes that keep messages on hold out of a fetch.

Callers hold `lock`: a heartbeat runs in its own thread, and a producer in any thread. Each state of a message has its
own index, and a row is in exactly the indexes of its state; `put` and `remove` maintain them.
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
from pillarbox.core.lane import InFlightMessage, RelayRegistration
from pillarbox.core.message import Held, KeyQueue, Message
from pillarbox.core.outcome import MAX_DELAY
from pillarbox.core.rows import InboxRecord
from pillarbox.core.statistics import ConsumerStatistics, Sample
from pillarbox.core.store import Override
from pillarbox.stores.memory.ordered import Ordered

P = ParamSpec("P")
R = TypeVar("R")

Position = tuple[int, str]
"""The sequence and the destination of a pending message."""
Identity = tuple[str, str]
"""The event id and the destination of a pending message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A row of the message table: the message, and what only operators read."""

    message: Message
    last_error: str | None = None
    first_failed_at: datetime | None = None

    @property
    def retry_count(self) -> int:
        """Failed sends. A retry by an operator counts a deferral without a send."""
        return 0 if self.first_failed_at is None else self.message.failures

    def holds_queue(self, now: datetime) -> bool:
        """Whether it holds back later messages of its ordering queue."""
        m = self.message
        if m.held is not None:
            return True
        return m.available_at is not None and (m.attempts + m.deferrals > 0 or m.available_at <= now)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDelivery:
    """A row of the history."""

    stored: StoredMessage
    published_at: datetime
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDeadLetter:
    """A row of the dead letters."""

    stored: StoredMessage
    error: str
    dead_lettered_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAttempt:
    """A failed send of an event."""

    event_id: str
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A row of the ledger."""

    status: str
    created_at: datetime
    send_number: int | None
    """The last started send; see `pillarbox.core.store.send_number`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRequest:
    """An operator request."""

    action: Action
    identity: Identity
    delay: float
    by: str
    at: datetime


@dataclass(slots=True, kw_only=True)
class StoredRelay:
    """A relay that runs, or whose crash no other relay has detected yet."""

    registration: RelayRegistration
    started_at: datetime
    lease_end: float
    """When its lease ends, on the monotonic clock."""
    in_flight: Sequence[InFlightMessage] = ()
    breakers: Mapping[str, str] = field(default_factory=dict[str, str])
    draining: bool = False
    stalled: str = ""


@dataclass(slots=True, kw_only=True)
class StoredDestination:
    """The override of a destination, and what relays report of it."""

    override: Override
    next_attempt_at: datetime | None = None
    changed_by: str | None = None
    changed_at: datetime | None = None


@dataclass(slots=True, kw_only=True)
class LaneTable:
    """One lane: its owner, and the positions of its messages by their state."""

    owner: str | None = None
    epoch: int = 0
    crashes: int = 0
    ready: Ordered[Position] = field(default_factory=Ordered)
    scheduled: Ordered[tuple[datetime, int, str]] = field(default_factory=Ordered)
    parked: defaultdict[str, Ordered[Position]] = field(default_factory=lambda: defaultdict(Ordered))
    keys: defaultdict[str, Ordered[Position]] = field(default_factory=lambda: defaultdict(Ordered))
    """Key → positions of its messages that are not ready, for all destinations."""


class Tables:
    """All data of a memory store."""

    def __init__(self, *, lanes: int, clock: Clock) -> None:
        self.lock = RLock()
        self.lanes = [LaneTable() for _ in range(lanes)]
        self.waiting: dict[Identity, StoredMessage] = {}
        self.positions: dict[Position, StoredMessage] = {}
        self.history: dict[int, StoredDelivery] = {}
        self.dead: dict[int, StoredDeadLetter] = {}
        self.attempts: list[StoredAttempt] = []
        self.processed: dict[Identity, LedgerEntry] = {}
        """The ledger, by event and destination."""
        self.inbox: dict[InboxRecord, datetime] = {}
        self.admitting: dict[InboxRecord, object] = {}
        """Inbox records of open transactions → the transaction that wrote each."""
        self.consumer_statistics: list[tuple[datetime, ConsumerStatistics]] = []
        self.relays: dict[str, StoredRelay] = {}
        self.requests: dict[int, StoredRequest] = {}
        self.carried_out: dict[int, Action] = {}
        """The requests that changed a message, by their number."""
        self.samples: list[Sample] = []
        self.destinations: dict[str, StoredDestination] = {}
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

    def alive_relays(self) -> Iterator[StoredRelay]:
        """The relays whose lease is valid."""
        now = self.elapsed()
        return (relay for relay in self.relays.values() if relay.lease_end > now)

    def after(self, seconds: float) -> datetime:
        """The time in this many seconds, negative: ago; at most a hundred years away."""
        return self.now() + timedelta(seconds=max(-MAX_DELAY, min(seconds, MAX_DELAY)))

    def next_number(self) -> int:
        """The next number, like that of a database's sequence: never returned twice."""
        return next(self._sequence)

    def lane_of(self, key: str | None, event_id: str) -> int:
        return crc32((event_id if key is None else key).encode()) % len(self.lanes)

    def put(self, stored: StoredMessage) -> None:
        """Add a row whose identity is free."""
        m = stored.message
        self.waiting[m.identity] = self.positions[m.position] = stored
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

    def remove(self, identity: Identity) -> StoredMessage:
        """Remove a row that is there."""
        stored = self.waiting.pop(identity)
        m = stored.message
        del self.positions[m.position]
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

    def dead_letter(self, stored: StoredMessage, error: str) -> None:
        """Add a dead letter; the row is no longer in the message table."""
        self.dead[self.next_number()] = StoredDeadLetter(stored=stored, error=error, dead_lettered_at=self.now())

    def write_ledger(self, identity: Identity, status: str, *, send_number: int | None = None) -> bool:
        """Write to the ledger; False, without writing, if the entry is SUCCESS."""
        known = self.processed.get(identity)
        if known is not None and known.status == "SUCCESS":
            return False
        self.processed[identity] = LedgerEntry(
            status=status, created_at=self.now() if known is None else known.created_at, send_number=send_number
        )
        return True

    def of_key(self, lane: int, key: str) -> Iterator[StoredMessage]:
        """The rows of a key that are not ready, in order of their position."""
        return (self.positions[position] for position in self.lanes[lane].keys.get(key, ()))

    def earlier(self, queue: KeyQueue, before: int) -> bool:
        """Whether a message before sequence `before` holds this ordering queue back."""
        now = self.now()
        for stored in self.of_key(queue.lane, queue.key):
            m = stored.message
            if m.id >= before:
                return False
            if concerns(queue.destination, m) and stored.holds_queue(now):
                return True
        return False

    def waiting_in(self, queue: KeyQueue) -> Iterator[StoredMessage]:
        """The waiting messages of this ordering queue, up to the first message that holds it back."""
        now = self.now()
        for stored in self.of_key(queue.lane, queue.key):
            m = stored.message
            if m.destination == queue.destination and m.held == Held.WAITING:
                yield stored
            elif concerns(queue.destination, m) and stored.holds_queue(now):
                return


def concerns(destination: str, message: Message) -> bool:
    """Whether a message is in this ordering queue of its key: destination '' counts for all, in both directions."""
    return message.destination in (destination, "") or destination == ""


class Facet(Protocol):
    """A part of a store."""

    _tables: Tables


F = TypeVar("F", bound=Facet)


def atomic(method: Callable[Concatenate[F, P], R]) -> Callable[Concatenate[F, P], CoroutineType[Any, Any, R]]:
    """Make a method of a facet an atomic coroutine that yields to the event loop before and after, like a database."""

    @wraps(method)
    async def locked(facet: F, /, *args: P.args, **kwargs: P.kwargs) -> R:
        await asyncio.sleep(0)
        with facet._tables.lock:  # pyright: ignore[reportPrivateUsage]  # it decorates the methods of facets
            result = method(facet, *args, **kwargs)
        await asyncio.sleep(0)
        return result

    # Pyright gives an `async def` this type, and compares it with the protocols; mypy does not.
    return cast("Callable[Concatenate[F, P], CoroutineType[Any, Any, R]]", locked)
