"""What is in hand: messages by line, each line in order, one at a time on its way out.

A line is a key for a destination. Its next message may go only after the one before was confirmed; when one fails,
the line stops and everything behind it is let go of, to be met again, in order, by a later look. Messages without a key
have a line of their own.

To a pipelined destination several messages of a line go in one batch, and the next batch after all of them were
answered. Those that were sent behind one that fails keep their own answers.
"""

from __future__ import annotations

import sys
from bisect import insort
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator

from pillarbox.core.lane import InHand
from pillarbox.core.message import Message, Slot

LineKey = tuple[int, str, str, bool]
"""Lane, key or event id, destination, and whether it is a key: an id may look like one."""


class Item:
    """A message in flight, with its queue, place and size computed once."""

    __slots__ = (
        "destination",
        "is_probe",
        "line",
        "message",
        "noted",
        "place",
        "queued",
        "since",
        "size",
        "took",
        "waited",
    )

    def __init__(self, message: Message, destination: str, waited: bool, since: float, size: int | None = None) -> None:
        self.destination = destination
        self.waited = waited
        """It came from among those that wait: others may wait behind it in the table."""
        self.since = since
        self.noted = False
        """Its attempt was written before it was sent: it is suspected of ending its relay."""
        self.queued = False
        """It waits in its queue for its turn."""
        self.is_probe = False
        """It is sent to find out whether its destination takes anything."""
        self.took: float | None = None
        """How long the send took that it was part of; None if it was not sent."""
        self.size = message.size if size is None else size
        self.become(message)

    def become(self, message: Message) -> None:
        """It is this message from now on: the same event, as the table has it by now."""
        self.message = message
        self.place = message.place
        self.line = line_of(message, self.destination)

    @property
    def attempt(self) -> int:
        """Which send of the message this is; tries in an outage count, though nobody is charged for them."""
        message = self.message
        return message.attempts + message.tries + (0 if self.noted else 1)

    @property
    def slot(self) -> Slot | None:
        message = self.message
        return None if message.key is None else Slot(message.lane, message.key, self.destination)


def line_of(message: Message, destination: str) -> LineKey:
    """The line in which a message stands once its destination is known."""
    if message.key is None:
        return message.lane, message.event_id, destination, False
    return message.lane, message.key, destination, True


class _Line:
    __slots__ = ("key", "queued", "sending", "waiting")

    def __init__(self, key: LineKey) -> None:
        self.key = key
        self.waiting: list[Item] = []
        self.sending: dict[Item, None] = {}
        """In the order in which they were sent."""
        self.queued = False


class Hand:
    """Everything a relay has read and not yet settled or let go of."""

    def __init__(self) -> None:
        self._lines: dict[LineKey, _Line] = {}
        self._items: dict[tuple[int, str], Item] = {}
        self._sendable: dict[str, deque[_Line]] = {}
        self._counts: Counter[str] = Counter()
        self._by_lane: Counter[int] = Counter()
        self.bytes = 0
        """Payload and headers of everything in flight."""

    def __len__(self) -> int:
        return len(self._items)

    def count(self, destination: str) -> int:
        """How many messages in flight are for this destination."""
        return self._counts[destination]

    @property
    def places(self) -> Collection[tuple[int, str]]:
        """What a look leaves out."""
        return self._items.keys()

    def add(self, item: Item) -> None:
        """Take a message in hand, in its place in its line."""
        self._put(item)
        item.queued = True
        line = self._lines.get(item.line)
        if line is None:
            line = self._lines[item.line] = _Line(item.line)
            line.waiting.append(item)
            self._offer(line)
            return
        if line.waiting and line.waiting[-1].message.id > item.message.id:
            insort(line.waiting, item, key=_sequence)
        else:
            line.waiting.append(item)
        if not line.sending and not line.queued:
            self._offer(line)

    def keep(self, item: Item) -> None:
        """Take a message in hand that goes nowhere: only so that no look brings it again before it is settled."""
        self._put(item)

    @property
    def anything_sendable(self) -> bool:
        """Whether anything may be there that can go now."""
        return bool(self._sendable)

    def destinations(self) -> list[str]:
        """Destinations for which something may go now, the one served longest ago first."""
        return list(self._sendable)

    def sendable(
        self, destination: str, most: int, *, most_bytes: int = sys.maxsize, pipelined: bool = False
    ) -> list[Item]:
        """Up to `most` messages that may go now, each the next of its line, and no more once they have `most_bytes`;
        they are on their way from here on. `pipelined`: several of a line, in order, and equal parts for all lines."""
        queue = self._sendable.pop(destination, deque())
        going: list[Item] = []
        while queue and len(going) < most and most_bytes > 0:
            line = queue.popleft()
            line.queued = False
            if line.sending or not line.waiting:
                continue
            part = max(1, (most - len(going)) // (len(queue) + 1)) if pipelined else 1
            while line.waiting and len(line.sending) < part and most_bytes > 0:
                item = line.waiting.pop(0)
                item.queued = False
                line.sending[item] = None
                most_bytes -= item.size
            going += line.sending
        if queue:
            self._sendable[destination] = queue
        return going

    def has_sendable(self, destination: str) -> bool:
        return any(not line.sending and line.waiting for line in self._sendable.get(destination, ()))

    def confirmed(self, item: Item) -> None:
        """It arrived, or was given up on: the next of its line may go."""
        if (line := self._lines.get(item.line)) is not None and item in line.sending:
            del line.sending[item]
            if line.sending:
                return
            self._continue(line)

    def accepted(self, items: Iterable[Item]) -> list[Item]:
        """These arrived, as far as their queues still wait for them, and the next of each queue may go. Returns those;
        an answer to any other one is stale."""
        current: list[Item] = []
        for item in items:
            # As `sends` and `confirmed` say, without their calls: this runs for every message.
            line = self._lines.get(item.line)
            if line is not None and item in line.sending and self._items.get(item.place) is item:
                del line.sending[item]
                if not line.sending:
                    self._continue(line)
                current.append(item)
        return current

    def has(self, line: LineKey) -> bool:
        """Whether a message of this queue is in flight."""
        return line in self._lines

    def is_sending(self, line: LineKey) -> bool:
        """Whether a message of this queue is being sent."""
        return line in self._lines and bool(self._lines[line].sending)

    def holds(self, item: Item) -> bool:
        """Whether this very item is in flight; once its lane was lost it is not, even if its message is again."""
        return self._items.get(item.place) is item

    def sends(self, item: Item) -> bool:
        """Whether this very item is what its queue waits for; an answer to any other one is stale."""
        return self.holds(item) and (line := self._lines.get(item.line)) is not None and item in line.sending

    def stopped(self, item: Item) -> list[Item]:
        """It comes again: its line stops. Returns those behind it that were not sent; they stay in hand until
        `forget`."""
        if not self.sends(item):
            return []
        line = self._lines[item.line]
        del line.sending[item]
        followers, line.waiting = line.waiting, []
        for follower in followers:
            follower.queued = False
        self._tidy(line)
        return followers

    def forget(self, items: Iterable[Item]) -> None:
        """These are no longer in hand: settled, or let go of."""
        for item in items:
            if self._items.get(item.place) is item:
                self._remove(item.place)
            if item.queued:
                item.queued = False
                line = self._lines[item.line]
                line.waiting.remove(item)
                self._tidy(line)

    def unsent(self, destination: str | None = None, lanes: Collection[int] | None = None) -> list[Item]:
        """What waits for its turn, for one destination or of some lanes."""
        return [
            item
            for line in self._lines.values()
            if (destination is None or line.key[2] == destination) and (lanes is None or line.key[0] in lanes)
            for item in line.waiting
        ]

    def unsent_from(self, places: Iterable[tuple[int, str]]) -> list[Item]:
        """Those of these that wait for their turn, and everything behind them in their queues."""
        found: list[Item] = []
        for place in places:
            item = self._items.get(place)
            line = None if item is None else self._lines.get(item.line)
            if item is not None and line is not None and item.queued:
                found += line.waiting[line.waiting.index(item) :]
        return list(dict.fromkeys(found))

    def drop_lanes(self, lanes: Collection[int]) -> None:
        """Somebody else owns these: whatever is in hand of them is none of ours any more."""
        for place in [place for place, item in self._items.items() if item.message.lane in lanes]:
            self._remove(place)
        for key in [key for key in self._lines if key[0] in lanes]:
            line = self._lines.pop(key)
            for item in line.waiting:
                item.queued = False
            line.waiting, line.sending = [], {}

    def has_suspect(self) -> bool:
        """Whether a message is in hand whose attempt was written before its send."""
        return any(item.noted for item in self._items.values())

    def lanes(self) -> set[int]:
        """Lanes of which something is in hand."""
        return {lane for lane, count in self._by_lane.items() if count}

    def held_longer_than(self, limit: float, now: float) -> Iterator[InHand]:
        """What people see as PROCESSING."""
        for item in self._items.values():
            if (held := now - item.since) > limit:
                yield InHand(event_id=item.message.event_id, destination=item.message.destination, seconds=held)

    def _continue(self, line: _Line) -> None:
        """Nothing of the queue is being sent: the next message may go, if there is one."""
        if not line.waiting:
            del self._lines[line.key]
        elif not line.queued:
            self._offer(line)

    def _offer(self, line: _Line) -> None:
        line.queued = True
        queue = self._sendable.get(line.key[2])
        if queue is None:
            self._sendable[line.key[2]] = deque([line])
        else:
            queue.append(line)

    def _tidy(self, line: _Line) -> None:
        if not line.sending and not line.waiting:
            self._lines.pop(line.key, None)

    def _put(self, item: Item) -> None:
        if item.place in self._items:
            self._remove(item.place)
        self._items[item.place] = item
        self._counts[item.destination] += 1
        self._by_lane[item.message.lane] += 1
        self.bytes += item.size

    def _remove(self, place: tuple[int, str]) -> None:
        item = self._items.pop(place)
        self.bytes -= item.size
        self._by_lane[item.message.lane] -= 1
        self._counts[item.destination] -= 1
        if not self._counts[item.destination]:
            del self._counts[item.destination]


def _sequence(item: Item) -> int:
    return item.message.id
