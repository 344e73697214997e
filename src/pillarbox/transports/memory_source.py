"""A source in this process: for tests of consumers, and the shortest example of a source.

It keeps the contract of the real ones: at most the prefetch is in flight, delays follow the clock, dead letters
have their reason, and the next source on the same `MemoryQueue` receives what this one did not acknowledge.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.errors import UnavailableError
from pillarbox.core.source import Incoming

QUARANTINE_AFTER = 2
"""Deliveries without acknowledgement after which a message is delivered in quarantine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadMessage:
    """A dead letter of a `MemoryQueue`."""

    incoming: Incoming
    reason: str


@dataclass(slots=True, kw_only=True)
class _QueuedMessage:
    incoming: Incoming
    unacknowledged: int = 0
    """Deliveries without acknowledgement."""


@dataclass(slots=True)
class MemoryQueue:
    """The messages of any number of sources: ready, delayed and dead. It outlives the sources."""

    ready: deque[_QueuedMessage] = field(default_factory=deque)
    waiting: list[tuple[float, _QueuedMessage]] = field(default_factory=list)
    dead: list[DeadMessage] = field(default_factory=list)

    def put(self, incoming: Incoming) -> None:
        """Add a new message."""
        self.ready.append(_QueuedMessage(incoming=incoming))


class MemorySource:
    """See `pillarbox.core.source.Source`. Several may share a queue."""

    def __init__(self, queue: MemoryQueue | None = None, *, prefetch: int = 10, clock: Clock | None = None) -> None:
        self.queue = queue or MemoryQueue()
        self._prefetch = prefetch
        self._clock = clock or SystemClock()
        self._in_flight: dict[int, _QueuedMessage] = {}
        self._outage: UnavailableError | None = None
        self._closed = False

    def outage(self) -> None:
        """Simulate an outage until `heal`: messages in flight return to the queue and cannot be acknowledged."""
        self._outage = UnavailableError("memory source: outage() simulates an outage; call heal()")
        self._requeue()

    def heal(self) -> None:
        """End the outage."""
        self._outage = None

    async def receive(self) -> MemoryDelivery:
        while True:
            await self.connect()
            self._move_due_to_ready()
            if self.queue.ready and len(self._in_flight) < self._prefetch:
                message = self.queue.ready.popleft()
                self._in_flight[id(message)] = message
                return MemoryDelivery(message, self)
            await self._clock.sleep(0.005)

    async def connect(self) -> None:
        if self._closed:
            raise UnavailableError("memory source: it is closed; create a new one")
        if self._outage is not None:
            raise self._outage.with_traceback(None)

    async def aclose(self) -> None:
        self._closed = True
        self._requeue()

    def settle(self, message: _QueuedMessage, into: Callable[[], None]) -> None:
        """Remove a message from those in flight; for its delivery. Raises UnavailableError if it was requeued since."""
        if self._in_flight.pop(id(message), None) is None:
            raise UnavailableError("memory source: the message was requeued by an outage; it is delivered again")
        into()

    def wait(self, message: _QueuedMessage, delay: float) -> None:
        """Deliver a message after a delay; for its delivery."""
        self.queue.waiting.append((self._clock.monotonic() + delay, message))

    def _move_due_to_ready(self) -> None:
        now = self._clock.monotonic()
        self.queue.ready.extend(message for due, message in self.queue.waiting if due <= now)
        self.queue.waiting[:] = [(due, message) for due, message in self.queue.waiting if due > now]

    def _requeue(self) -> None:
        for message in reversed(self._in_flight.values()):
            message.unacknowledged += 1
            self.queue.ready.appendleft(message)
        self._in_flight.clear()


class MemoryDelivery:
    """See `pillarbox.core.source.Delivery`."""

    def __init__(self, message: _QueuedMessage, source: MemorySource) -> None:
        self._message = message
        self._source = source
        self.incoming = message.incoming
        self.quarantined = message.unacknowledged >= QUARANTINE_AFTER
        self.crashes = max(0, message.unacknowledged - QUARANTINE_AFTER)

    async def ack(self) -> None:
        self._source.settle(self._message, lambda: None)

    async def retry(self, *, delay: float, reason: str, counted: bool = True) -> None:
        retried = _QueuedMessage(incoming=self._failed(counted=counted))
        self._source.settle(self._message, lambda: self._source.wait(retried, delay))

    async def reject(self, reason: str) -> None:
        dead = DeadMessage(incoming=self._failed(counted=True), reason=reason)
        self._source.settle(self._message, lambda: self._source.queue.dead.append(dead))

    def _failed(self, *, counted: bool) -> Incoming:
        before = self.incoming
        return replace(before, attempts=before.attempts + counted, deferrals=before.deferrals + (not counted))
