"""The messages of assigned partitions: ready, held until they are due, and in flight; and what may be committed.

Pure state without a client or a clock of its own. A group's committed offset says that everything before it was
processed. So the offset to commit is that of the first unacknowledged message, whatever was acknowledged behind it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pillarbox.transports.kafka.records import Header

PartitionName = tuple[str, int]
"""Topic and number."""


class Received(NamedTuple):
    """A message with the assignment under which it was received."""

    assignment: Assignment
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]

    @property
    def size(self) -> int:
        """Bytes of value, key and headers."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.value or b"") + len(self.key or b"") + headers


class Assignment:
    """One partition, from its assignment to this consumer until it is revoked, lost, or read again from an offset."""

    __slots__ = ("_next", "_open", "committed", "name", "over", "start")

    def __init__(self, name: PartitionName, start: int | None = None, committed: int | None = None) -> None:
        self.name = name
        self.start = start
        """The offset from which it is read again after an outage; None: from the committed offset."""
        self.over = False
        """Its messages can no longer be acknowledged: they are delivered again."""
        self.committed = committed
        """The offset that was committed last, or is being committed."""
        self._open: set[int] = set()
        self._next = start

    def receive(self, offset: int) -> None:
        """Note a message."""
        self._open.add(offset)
        self._next = max(self._next or 0, offset + 1)

    def skip(self, offset: int) -> None:
        """Note a message that is not taken now: it is read again."""
        if self._next is None:
            self.start = self._next = offset

    def acknowledge(self, offset: int) -> None:
        """Note that a message was processed."""
        self._open.discard(offset)

    @property
    def position(self) -> int | None:
        """The first offset that is not yet processed; None: nothing was received."""
        return min(self._open, default=self._next)

    @property
    def to_commit(self) -> int | None:
        """The position, unless it is committed or nothing was processed."""
        position = self.position
        return None if position == self.committed or position is None else position


class PartitionMessages:
    """The messages of all partitions of one consumer; at most `prefetch` are ready or in flight."""

    def __init__(self, prefetch: int) -> None:
        self._prefetch = prefetch
        self._in_flight: set[tuple[PartitionName, int]] = set()
        self._held: list[tuple[float, int, Received]] = []
        self._number = 0
        self.held_bytes = 0
        self.ready: deque[Received] = deque()
        self.assignments: dict[PartitionName, Assignment] = {}

    @property
    def full(self) -> bool:
        """Whether no more messages may be taken."""
        return len(self.ready) + len(self._in_flight) >= self._prefetch

    @property
    def held(self) -> int:
        """How many messages wait until they are due."""
        return len(self._held)

    @property
    def next_due(self) -> float | None:
        """When the next held message is due."""
        return self._held[0][0] if self._held else None

    def assign(self, names: Iterable[PartitionName], *, start: int | None = None, committed: int | None = None) -> None:
        """Begin new assignments."""
        for name in names:
            self.assignments[name] = Assignment(name, start, committed)

    def end(self, names: Iterable[PartitionName]) -> list[Assignment]:
        """End assignments: their messages are gone from here, and acknowledging one fails."""
        ended = [self.assignments.pop(name) for name in names if name in self.assignments]
        for one in ended:
            one.over = True
        if ended:
            self.ready = deque(one for one in self.ready if not one.assignment.over)
            gone = {one.name for one in ended}
            self._in_flight = {one for one in self._in_flight if one[0] not in gone}
            self._held = [one for one in self._held if not one[2].assignment.over]
            heapq.heapify(self._held)
            self.held_bytes = sum(one[2].size for one in self._held)
        return ended

    def receive(self, message: Received, *, due: float, now: float) -> bool:
        """Take a message; returns whether it is ready, not held."""
        message.assignment.receive(message.offset)
        if due > now:
            self._push(message, due)
            return False
        self.ready.append(message)
        return True

    def hold(self, message: Received, *, due: float) -> bool:
        """Hold a message in flight until it is due, in its place; False if its assignment is over."""
        if message.assignment.over:
            return False
        self._push(message, due)
        return True

    def _push(self, message: Received, due: float) -> None:
        self._number += 1
        self.held_bytes += message.size
        heapq.heappush(self._held, (due, self._number, message))

    def release(self, now: float) -> bool:
        """Make held messages ready that are due, as far as there is room; returns whether there were any."""
        released = False
        while self._held and self._held[0][0] <= now:
            message = self._held[0][2]
            place = (message.assignment.name, message.offset)
            if self.full and place not in self._in_flight:
                break
            heapq.heappop(self._held)
            self._in_flight.discard(place)  # there is one that was held in its place
            self.held_bytes -= message.size
            self.ready.append(message)
            released = True
        return released

    def take(self) -> Received | None:
        """The next ready message, which is then in flight."""
        if not self.ready:
            return None
        message = self.ready.popleft()
        self._in_flight.add((message.assignment.name, message.offset))
        return message

    def acknowledge(self, message: Received) -> bool:
        """Note that a message was processed; False if its assignment is over."""
        if message.assignment.over:
            return False
        message.assignment.acknowledge(message.offset)
        self._in_flight.discard((message.assignment.name, message.offset))
        return True
