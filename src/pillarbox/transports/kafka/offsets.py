"""An assigned partition: which of its messages are acknowledged, and what may be committed.

A group's committed offset says that everything before it was processed. So the offset to commit is that of the first
unacknowledged message, whatever was acknowledged behind it. Its metadata counts crashes, see crashes.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pillarbox.transports.kafka.crashes import CrashCounts
from pillarbox.transports.kafka.records import Header

PartitionName = tuple[str, int]
"""Topic and number."""
MessageId = tuple[PartitionName, int]
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
    def id(self) -> MessageId:
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
        "_first",
        "_next",
        "_open",
        "_prefetch",
        "_quarantined_to",
        "_starts",
        "begun",
        "committed",
        "confirmed",
        "left",
        "marked",
        "name",
        "over",
        "start",
        "uncounted",
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
        self.begun = False
        """A message was received."""
        self.left = False
        """This consumer gives it back in order: that is no crash."""
        self.uncounted = False
        """Kafka accepts no counts: offsets are committed without them."""
        self.waiting: list[tuple[Received, float]] = []
        """Messages received before the commit was confirmed, with the time at which they are due."""
        before = counts or CrashCounts()
        self._starts = before.starts
        self._alone = dict(before.alone)
        self._prefetch = prefetch
        self._open: set[int] = set()
        self._first = self._next = start
        self._quarantined_to = 0

    def receive(self, offset: int) -> None:
        """Note a message."""
        if not self.begun:
            self.begun = True
            self._first = offset  # behind the committed offset if messages in between are gone
            self._quarantined_to = offset + CrashCounts(self._starts).quarantined(self._prefetch)
        self._open.add(offset)
        self._next = max(self._next or 0, offset + 1)

    def has_passed(self, offset: int) -> bool:
        """Whether the message at this offset was already received, or was not to be read."""
        return self._next is not None and offset < self._next

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
        again.marked, again.begun, again.confirmed = self.marked, self.begun, self.confirmed
        again._quarantined_to, again.uncounted = self._quarantined_to, self.uncounted
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
        if self.uncounted:
            return Commit(position, "")
        starts = self._starts_before + (self.begun and not self.left)
        alone = {offset: count for offset, count in self._alone.items() if offset >= position}
        return Commit(position, str(CrashCounts(starts, alone)))

    @property
    def _starts_before(self) -> int:
        """The earlier consumers that began at the position."""
        return self._starts if self.position == self._first else 0
