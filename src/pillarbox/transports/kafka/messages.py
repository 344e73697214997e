"""The messages of assigned partitions: ready, held until they are due, in quarantine, and in flight.

Pure state without a client or a clock of its own.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable

from pillarbox.transports.kafka.crashes import CrashCounts
from pillarbox.transports.kafka.offsets import Assignment, Commit, MessageId, PartitionName, Received

MAX_WAIT = 5.0
"""Seconds for which messages wait for a commit. Kafka may refuse it, for instance while the group rebalances: then
messages are delivered without counting crashes."""
_Held = tuple[float, int, Received]
"""When a message is due, the number of its hold, and the message."""


class PartitionMessages:
    """The messages of all partitions of one consumer; at most `prefetch` are in flight."""

    def __init__(self, prefetch: int) -> None:
        self._prefetch = prefetch
        self._in_flight: set[MessageId] = set()
        self._held: list[_Held] = []
        self._held_in_place: list[_Held] = []
        """Those that were in flight: each keeps its room."""
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
        self._waits_since: float | None = None

    @property
    def full(self) -> bool:
        """Whether no more messages may be taken."""
        return len(self.ready) + len(self._in_flight) + len(self._held_in_place) >= self._prefetch

    @property
    def held(self) -> int:
        """How many messages wait until they are due."""
        return len(self._held) + len(self._held_in_place)

    @property
    def next_due(self) -> float | None:
        """When the next held message is due for which there is room."""
        heaps = (self._held_in_place, [] if self.full else self._held)
        return min((heap[0][0] for heap in heaps if heap), default=None)

    @property
    def in_quarantine(self) -> bool:
        """Whether a message in quarantine is received: nothing else is, until it is handled."""
        return self._alone is not None or bool(self._quarantined)

    @property
    def alone_in_flight(self) -> bool:
        """Whether a message in quarantine is in flight."""
        return self._alone is not None and self._alone.id in self._in_flight

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

    def assignment_of(self, name: PartitionName, offset: int) -> Assignment:
        """The assignment of a message that was received. One before the expected offset means that the broker lost the
        end of its log: what follows are other messages, so it is a new assignment."""
        assignment = self.assignments[name]
        if assignment.has_passed(offset):
            self.end([name])
            assignment = Assignment(name, offset, assignment.committed, prefetch=self._prefetch)
            self.assignments[name] = assignment
        return assignment

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
                self._alone, self._may_deliver_alone = None, False
            self._in_flight = {one for one in self._in_flight if one[0] not in gone}
            self._held = _without_ended(self._held)
            self._held_in_place = _without_ended(self._held_in_place)
            self.held_bytes = sum(one[2].size for one in (*self._held, *self._held_in_place))
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
        if not (assignment.begun and assignment.is_confirmed):
            return False
        if self._alone is not None and self._alone.assignment is assignment:
            self._may_deliver_alone = True
        return self._mark(assignment, now) or self._may_deliver_alone

    def end_wait(self, elapsed: float, *, now: float) -> bool:
        """Make messages ready that waited too long for a commit; returns whether there were any. `elapsed` are the
        seconds of a clock that nothing sets."""
        if not self.awaits_commit:
            self._waits_since = None
            return False
        if self._waits_since is None:
            self._waits_since = elapsed
        if elapsed - self._waits_since < MAX_WAIT:
            return False
        self._waits_since = None
        self._may_deliver_alone = self._alone is not None
        for name in list(self.unmarked):
            self._mark(self.assignments[name], now)
        return True

    def _mark(self, assignment: Assignment, now: float) -> bool:
        assignment.marked = True
        self.unmarked.discard(assignment.name)
        waiting, assignment.waiting = assignment.waiting, []
        ready = [self._place(message, due, now) for message, due in waiting]
        return any(ready)

    def _place(self, message: Received, due: float, now: float) -> bool:
        if due > now:
            self._push(self._held, message, due)
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
        self._in_flight.discard(message.id)
        self._end_alone(message)
        message.assignment.handled_alone(message.offset)
        self._push(self._held_in_place, message._replace(crashes=None), due)
        return True

    def _push(self, heap: list[_Held], message: Received, due: float) -> None:
        self._number += 1
        self.held_bytes += message.size
        heapq.heappush(heap, (due, self._number, message))

    def release(self, now: float) -> bool:
        """Make held messages ready that are due, as far as there is room; returns whether there were any."""
        released = False
        for heap in (self._held_in_place, self._held):
            while heap and heap[0][0] <= now and not (heap is self._held and self.full):
                message = heapq.heappop(heap)[2]
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
            self._in_flight.add(message.id)
        return message

    def acknowledge(self, message: Received, *, rejected: bool = False) -> bool:
        """Note that a message was processed; False if its assignment is over."""
        if message.assignment.over:
            return False
        message.assignment.acknowledge(message.offset, rejected=rejected)
        self._in_flight.discard(message.id)
        self._end_alone(message)
        return True

    def _end_alone(self, message: Received) -> None:
        if self._alone is not None and self._alone.id == message.id:
            self._alone, self._may_deliver_alone = None, False

    def _uncount(self) -> None:
        """The message in quarantine is void, and its consumer did not crash."""
        if self._alone is not None:
            self._alone.assignment.uncount_alone(self._alone.offset)


def _without_ended(heap: list[_Held]) -> list[_Held]:
    left = [one for one in heap if not one[2].assignment.over]
    heapq.heapify(left)
    return left
