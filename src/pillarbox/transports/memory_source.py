"""A source in this process: for tests of consumers, and the shortest example of a source.

It keeps the contract of the real ones: no more than the prefetch in hand, waits by the clock, dead letters with their
reason, and what was not answered when it closes is there for the next source on the same `MemoryQueue`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.errors import UnavailableError
from pillarbox.core.source import Incoming

SUSPECT = 2
"""A message that was given out so often and never answered is given out alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadMessage:
    """A message that was given up on."""

    incoming: Incoming
    reason: str


@dataclass(slots=True, kw_only=True)
class _Kept:
    incoming: Incoming
    given_out: int = 0


@dataclass(slots=True)
class MemoryQueue:
    """What outlives a source: messages that are ready, that wait until a time, and that were given up on."""

    ready: deque[_Kept] = field(default_factory=deque)
    waiting: list[tuple[float, _Kept]] = field(default_factory=list)
    dead: list[DeadMessage] = field(default_factory=list)

    def put(self, incoming: Incoming) -> None:
        """A new message."""
        self.ready.append(_Kept(incoming=incoming))


class MemorySource:
    """See `pillarbox.core.source.Source`. Several may share a queue."""

    def __init__(self, queue: MemoryQueue | None = None, *, prefetch: int = 10, clock: Clock | None = None) -> None:
        self.queue = queue or MemoryQueue()
        self._prefetch = prefetch
        self._clock = clock or SystemClock()
        self._in_hand: dict[int, _Kept] = {}
        self._outage: UnavailableError | None = None
        self._closed = False

    def outage(self) -> None:
        """Cut the way, until `heal`: what is in hand goes back, and its answers are not heard."""
        self._outage = UnavailableError("memory source: cut off by outage(); call heal()")
        self._give_back()

    def heal(self) -> None:
        """Open the way again."""
        self._outage = None

    async def receive(self) -> MemoryDelivery:
        while True:
            await self.connect()
            self._bring_back_what_is_due()
            if self.queue.ready and len(self._in_hand) < self._prefetch:
                kept = self.queue.ready.popleft()
                self._in_hand[id(kept)] = kept
                return MemoryDelivery(kept, self)
            await self._clock.sleep(0.005)

    async def connect(self) -> None:
        if self._closed:
            raise UnavailableError("memory source: it is closed; make a new one")
        if self._outage is not None:
            raise self._outage.with_traceback(None)

    async def aclose(self) -> None:
        self._closed = True
        self._give_back()

    def settle(self, kept: _Kept, into: Callable[[], None]) -> None:
        """Take it out of hand; for its delivery. Raises UnavailableError if it is not there any more."""
        if self._in_hand.pop(id(kept), None) is None:
            raise UnavailableError("memory source: the way was cut since; the message comes again")
        into()

    def wait(self, kept: _Kept, after: float) -> None:
        """Have it ready again after a while; for its delivery."""
        self.queue.waiting.append((self._clock.monotonic() + after, kept))

    def _bring_back_what_is_due(self) -> None:
        now = self._clock.monotonic()
        self.queue.ready.extend(kept for due, kept in self.queue.waiting if due <= now)
        self.queue.waiting[:] = [(due, kept) for due, kept in self.queue.waiting if due > now]

    def _give_back(self) -> None:
        for kept in reversed(self._in_hand.values()):
            kept.given_out += 1
            self.queue.ready.appendleft(kept)
        self._in_hand.clear()


class MemoryDelivery:
    """See `pillarbox.core.source.Delivery`."""

    def __init__(self, kept: _Kept, source: MemorySource) -> None:
        self._kept = kept
        self._source = source
        self.incoming = kept.incoming
        self.deaths = max(0, kept.given_out - SUSPECT)
        self.alone = kept.given_out >= SUSPECT

    async def ack(self) -> None:
        self._source.settle(self._kept, lambda: None)

    async def retry(self, *, after: float, reason: str, charge: bool = True) -> None:
        kept = _Kept(incoming=self._failed(charge=charge))
        self._source.settle(self._kept, lambda: self._source.wait(kept, after))

    async def reject(self, reason: str) -> None:
        letter = DeadMessage(incoming=self._failed(charge=True), reason=reason)
        self._source.settle(self._kept, lambda: self._source.queue.dead.append(letter))

    def _failed(self, *, charge: bool) -> Incoming:
        before = self.incoming
        return replace(before, attempts=before.attempts + charge, tries=before.tries + (not charge))
