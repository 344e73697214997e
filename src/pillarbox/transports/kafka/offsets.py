"""The messages of assigned partitions: ready, held until they are due, and in flight; and what may be committed.

Pure state without a client or a clock of its own. A group's committed offset says that everything before it was
processed. So the offset to commit is that of the first unacknowledged message, whatever was acknowledged behind it. Its
metadata counts crashes, see crashes.py.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pillarbox.transports.kafka.crashes import CrashCounts
from pillarbox.transports.kafka.records import Header

PartitionName = tuple[str, int]
"""Topic and number."""
Place = tuple[PartitionName, int]
"""A message: its partition and offset."""


class Commit(NamedTuple):
    """What is committed for a partition."""

    offset: int
    metadata: str


class Received(NamedTuple):
    """A message with the assignment under which it was received."""

    assignment: Assignment
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]
    crashes: int | None = None
    """How many consumers crashed with this message alone in flight; None: it is not quarantined."""

    @property
    def place(self) -> Place:
        return self.assignment.name, self.offset

    @property
    def size(self) -> int:
        """Bytes of value, key and headers."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.value or b"") + len(self.key or b"") + headers


class Assignment:
    """One partition, from its assignment to this consumer until it is revoked, lost, or read again from an offset."""

    __slots__ = (
        "_alone",
        "_begun",
        "_first",
        "_next",
        "_open",
        "_prefetch",
        "_quarantined_to",
        "_starts",
        "committed",
        "confirmed",
        "left",
        "marked",
        "name",
        "over",
        "start",
        "waiting",
    )

    def __init__(
        self,
        name: PartitionName,
        start: int | None = None,
        committed: Commit | None = None,
        counts: CrashCounts | None = None,
        *,
        prefetch: int = 1,
    ) -> None:
        """counts: what the committed offset says of earlier consumers."""
        self.name = name
        self.start = start
        """The offset from which it is read again after an outage; None: from the committed offset."""
        self.over = False
        """Its messages can no longer be acknowledged: they are delivered again."""
        self.committed = committed
        """What was committed last, or is being committed."""
        self.confirmed: Commit | None = None
        """What Kafka confirmed last."""
        self.marked = False
        """It is committed that this consumer begins here: messages may be delivered."""
        self.left = False
        """This consumer gives it back in order: that is no crash."""
        self.waiting: list[tuple[Received, float]] = []
        """Messages received before the commit was confirmed, with the time at which they are due."""
        before = counts or CrashCounts()
        self._starts = before.starts
        self._alone = dict(before.alone)
        self._prefetch = prefetch
        self._begun = False
        self._open: set[int] = set()
        self._first = self._next = start
        self._quarantined_to = 0

    def receive(self, offset: int) -> None:
        """Note a message."""
        if not self._begun:
            self._begun = True
            self._first = offset  # behind the committed offset if messages in between are gone
            self._quarantined_to = offset + CrashCounts(self._starts).quarantined(self._prefetch)
        self._open.add(offset)
        self._next = max(self._next or 0, offset + 1)

    def skip(self, offset: int) -> None:
        """Note a message that is not taken now: it is read again."""
        if self._next is None:
            self.start = self._next = offset

    def acknowledge(self, offset: int, *, rejected: bool = False) -> None:
        """Note that a message was processed. The crashes of a rejected one are kept until its offset is committed: if
        it is delivered again before, it does not crash as many consumers again."""
        self._open.discard(offset)
        if not rejected:
            self._alone.pop(offset, None)

    def is_quarantined(self, offset: int) -> bool:
        """Whether consumers crashed that may have had this message in flight."""
        return offset < self._quarantined_to or offset in self._alone

    def count_alone(self, offset: int) -> int:
        """Note that a message is delivered alone; returns how many consumers crashed before while it was."""
        before = self._alone.get(offset, 0)
        self._alone[offset] = before + 1
        return before

    def uncount_alone(self, offset: int) -> None:
        """Note that a message delivered alone was neither acknowledged nor did its consumer crash."""
        if (count := self._alone.pop(offset, 0)) > 1:
            self._alone[offset] = count - 1

    def handled_alone(self, offset: int) -> None:
        """Note that a message delivered alone has failed without a crash."""
        self._alone.pop(offset, None)

    def restarted(self) -> Assignment:
        """The same partition, read again from the first message that is not processed."""
        counts = CrashCounts(self._starts_before, self._alone)
        again = Assignment(self.name, self.position, self.committed, counts, prefetch=self._prefetch)
        again.marked, again._begun, again.confirmed = self.marked, self._begun, self.confirmed
        again._quarantined_to = self._quarantined_to
        return again

    @property
    def position(self) -> int | None:
        """The first offset that is not yet processed; None: nothing was received."""
        return min(self._open, default=self._next)

    @property
    def to_commit(self) -> Commit | None:
        """The position with its metadata, unless it is committed or nothing was processed."""
        return None if (wanted := self._wanted) == self.committed else wanted

    @property
    def is_confirmed(self) -> bool:
        """Whether Kafka confirmed what is to be committed."""
        return self.confirmed == self.committed == self._wanted

    @property
    def _wanted(self) -> Commit | None:
        if (position := self.position) is None:
            return None
        starts = self._starts_before + (self._begun and not self.left)
        alone = {offset: count for offset, count in self._alone.items() if offset >= position}
        return Commit(position, str(CrashCounts(starts, alone)))

    @property
    def _starts_before(self) -> int:
        """The earlier consumers that began at the position."""
        return self._starts if self.position == self._first else 0


class PartitionMessages:
    """The messages of all partitions of one consumer; at most `prefetch` are in flight."""

    def __init__(self, prefetch: int) -> None:
        self._prefetch = prefetch
        self._in_flight: set[Place] = set()
        self._kept: set[Place] = set()
        """Places of messages that were in flight and are held."""
        self._held: list[tuple[float, int, Received]] = []
        self._number = 0
        self.held_bytes = 0
        self.ready: deque[Received] = deque()
        self._quarantined: deque[Received] = deque()
        """Wait until nothing else is ready or in flight."""
        self._alone: Received | None = None
        """The message in quarantine that is delivered next, or in flight."""
        self._may_deliver_alone = False
        """It is committed that this one is delivered."""
        self.assignments: dict[PartitionName, Assignment] = {}
        self.unmarked: set[PartitionName] = set()
        """Partitions whose messages wait for a commit."""

    @property
    def full(self) -> bool:
        """Whether no more messages may be taken."""
        return len(self.ready) + len(self._in_flight) + len(self._kept) >= self._prefetch

    @property
    def held(self) -> int:
        """How many messages wait until they are due."""
        return len(self._held)

    @property
    def next_due(self) -> float | None:
        """When the next held message is due."""
        return self._held[0][0] if self._held else None

    @property
    def in_quarantine(self) -> bool:
        """Whether a message in quarantine is received: nothing else is, until it is handled."""
        return self._alone is not None or bool(self._quarantined)

    @property
    def alone_in_flight(self) -> bool:
        """Whether a message in quarantine is in flight."""
        return self._alone is not None and self._alone.place in self._in_flight

    @property
    def awaits_commit(self) -> bool:
        """Whether a message waits for a commit."""
        return (self._alone is not None and not self._may_deliver_alone) or bool(self.unmarked)

    def assign(
        self,
        name: PartitionName,
        *,
        start: int | None = None,
        committed: Commit | None = None,
        counts: CrashCounts | None = None,
    ) -> None:
        """Begin a new assignment."""
        self.assignments[name] = Assignment(name, start, committed, counts, prefetch=self._prefetch)

    def revoke(self, names: Iterable[PartitionName]) -> list[Assignment]:
        """End assignments that are given back in order: what is in flight did not crash this consumer."""
        given = set(names)
        if self._alone is not None and self._alone.assignment.name in given:
            self._uncount()
        ended = self.end(given)
        for one in ended:
            one.left = True
        return ended

    def end(self, names: Iterable[PartitionName]) -> list[Assignment]:
        """End assignments: their messages are gone from here, and acknowledging one fails."""
        ended = [self.assignments.pop(name) for name in names if name in self.assignments]
        for one in ended:
            one.over = True
            one.waiting.clear()
        if ended:
            gone = {one.name for one in ended}
            self.unmarked -= gone
            self.ready = deque(one for one in self.ready if not one.assignment.over)
            self._quarantined = deque(one for one in self._quarantined if not one.assignment.over)
            if self._alone is not None and self._alone.assignment.over:
                self._alone = None
            self._in_flight = {one for one in self._in_flight if one[0] not in gone}
            self._kept = {one for one in self._kept if one[0] not in gone}
            self._held = [one for one in self._held if not one[2].assignment.over]
            heapq.heapify(self._held)
            self.held_bytes = sum(one[2].size for one in self._held)
        return ended

    def restart(self) -> None:
        """Void everything in flight; the partitions stay assigned."""
        self._uncount()
        for ended in self.end(list(self.assignments)):
            self.assignments[ended.name] = ended.restarted()

    def leave(self) -> None:
        """Void everything before this consumer leaves its group. To leave with a message in flight counts as a crash:
        its handler was cancelled."""
        in_flight = {name for name, _ in self._in_flight}
        if self._alone is not None and not self.alone_in_flight:
            self._uncount()
        for ended in self.end(list(self.assignments)):
            again = self.assignments[ended.name] = ended.restarted()
            again.left = ended.name not in in_flight

    def receive(self, message: Received, *, due: float, now: float) -> bool:
        """Take a message; returns whether it is ready: not held, and not waiting for a commit."""
        assignment = message.assignment
        assignment.receive(message.offset)
        if not assignment.marked:
            assignment.waiting.append((message, due))
            self.unmarked.add(assignment.name)
            return False
        return self._place(message, due, now)

    def note_commit(self, name: PartitionName, commit: Commit, *, now: float) -> bool:
        """Note that Kafka confirmed the commit of a partition; returns whether messages became ready."""
        if (assignment := self.assignments.get(name)) is None:
            return False
        assignment.confirmed = commit
        if not assignment.is_confirmed:
            return False
        if self._alone is not None and self._alone.assignment is assignment:
            self._may_deliver_alone = True
        assignment.marked = True
        self.unmarked.discard(name)
        waiting, assignment.waiting = assignment.waiting, []
        ready = [self._place(message, due, now) for message, due in waiting]
        return any(ready) or self._may_deliver_alone

    def _place(self, message: Received, due: float, now: float) -> bool:
        if due > now:
            self._push(message, due)
            return False
        return self._make_ready(message)

    def _make_ready(self, message: Received) -> bool:
        quarantined = message.assignment.is_quarantined(message.offset)
        (self._quarantined if quarantined else self.ready).append(message)
        return not quarantined

    def isolate(self) -> bool:
        """Choose a message in quarantine if nothing else is ready or in flight; returns whether there is a new one. It
        is delivered as soon as that is committed."""
        if self._alone is not None or not self._quarantined or self.ready or self._in_flight:
            return False
        message = self._quarantined.popleft()
        self._alone = message._replace(crashes=message.assignment.count_alone(message.offset))
        self._may_deliver_alone = message.assignment.is_confirmed
        return True

    def hold(self, message: Received, *, due: float) -> bool:
        """Hold a message in flight until it is due, in its place; False if its assignment is over."""
        if message.assignment.over:
            return False
        self._in_flight.discard(message.place)
        self._kept.add(message.place)
        self._end_alone(message)
        message.assignment.handled_alone(message.offset)
        self._push(message._replace(crashes=None), due)
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
            if self.full and message.place not in self._kept:
                break
            heapq.heappop(self._held)
            self._kept.discard(message.place)
            self.held_bytes -= message.size
            released |= self._make_ready(message)
        return released

    def take(self) -> Received | None:
        """The next ready message, which is then in flight."""
        if (message := self._alone) is not None:
            if self.alone_in_flight or not self._may_deliver_alone:
                return None
        elif self.ready and len(self._in_flight) < self._prefetch:
            message = self.ready.popleft()
        if message is not None:
            self._in_flight.add(message.place)
        return message

    def acknowledge(self, message: Received, *, rejected: bool = False) -> bool:
        """Note that a message was processed; False if its assignment is over."""
        if message.assignment.over:
            return False
        message.assignment.acknowledge(message.offset, rejected=rejected)
        self._in_flight.discard(message.place)
        self._end_alone(message)
        return True

    def _end_alone(self, message: Received) -> None:
        if self._alone is not None and self._alone.place == message.place:
            self._alone = None

    def _uncount(self) -> None:
        """The message in quarantine is void, and its consumer did not crash."""
        if self._alone is not None:
            self._alone.assignment.uncount_alone(self._alone.offset)
