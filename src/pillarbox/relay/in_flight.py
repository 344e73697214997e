"""The messages in flight: fetched, and neither settled nor released. Each ordering queue is in order.

An ordering queue is a key for a destination. Its next message may go only after the one before was confirmed; when one
fails, the queue stops and the later ones are released, to be fetched again in order. A message without a key
has a queue of its own.

To a pipelined destination several messages of a queue go in one batch, and the next batch after all of them have
results. Those that were sent behind one that fails keep their own results.
"""

from __future__ import annotations

import sys
from bisect import insort
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence

from pillarbox.core.errors import UnavailableError
from pillarbox.core.lane import InFlightMessage
from pillarbox.core.message import KeyQueue, Message
from pillarbox.core.transport import SendResult

QueueKey = tuple[int, str, str, bool]
"""Lane, key or event id, destination, and whether it is a key: an id may look like one."""


class Item:
    """A message in flight, with its queue, position and size computed once."""

    __slots__ = (
        "counted_before_send",
        "destination",
        "is_probe",
        "message",
        "position",
        "queue",
        "queued",
        "since",
        "size",
        "took",
        "waited",
    )

    def __init__(self, message: Message, destination: str, waited: bool, since: float, size: int | None = None) -> None:
        self.destination = destination
        self.waited = waited
        """It was scheduled, waiting or parked: later ones of its key may wait for it in the table."""
        self.since = since
        self.counted_before_send = False
        """Its attempt was counted before the send: it is in quarantine."""
        self.queued = False
        """It waits in its queue for its turn."""
        self.is_probe = False
        """It is sent to find out whether its destination is available."""
        self.took: float | None = None
        """How long the send took that it was part of; None if it was not sent."""
        self.size = message.size if size is None else size
        # As `become` does, without its calls: this runs for every message.
        self.message = message
        self.position = message.id, message.destination
        key = message.key
        self.queue: QueueKey = (message.lane, message.event_id if key is None else key, destination, key is not None)

    def become(self, message: Message) -> None:
        """Replace the message with its current row: the same event."""
        self.message = message
        self.position = message.position
        self.queue = queue_of(message, self.destination)

    @property
    def attempt(self) -> int:
        """Which send of the message this is; sends that an outage ended count, too."""
        message = self.message
        return message.attempts + message.deferrals + (0 if self.counted_before_send else 1)

    @property
    def key_queue(self) -> KeyQueue | None:
        message = self.message
        return None if message.key is None else KeyQueue(message.lane, message.key, self.destination)


def queue_of(message: Message, destination: str) -> QueueKey:
    """The queue in which a message stands once its destination is known."""
    if message.key is None:
        return message.lane, message.event_id, destination, False
    return message.lane, message.key, destination, True


class _KeyQueue:
    __slots__ = ("key", "queued", "sending", "waiting")

    def __init__(self, key: QueueKey) -> None:
        self.key = key
        self.waiting: list[Item] = []
        self.sending: dict[Item, None] = {}
        """In the order in which they were sent."""
        self.queued = False


class InFlight:
    """Everything a relay has fetched and neither settled nor released."""

    def __init__(self) -> None:
        self._queues: dict[QueueKey, _KeyQueue] = {}
        self._items: dict[tuple[int, str], Item] = {}
        self._sendable: dict[str, deque[_KeyQueue]] = {}
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
    def positions(self) -> Collection[tuple[int, str]]:
        """Positions that a fetch leaves out."""
        return self._items.keys()

    def add(self, item: Item) -> None:
        """Add a message at its position in its queue."""
        self._put(item)
        item.queued = True
        queue = self._queues.get(item.queue)
        if queue is None:
            queue = self._queues[item.queue] = _KeyQueue(item.queue)
            queue.waiting.append(item)
            self._offer(queue)
            return
        if queue.waiting and queue.waiting[-1].message.id > item.message.id:
            insort(queue.waiting, item, key=_sequence)
        else:
            queue.waiting.append(item)
        if not queue.sending and not queue.queued:
            self._offer(queue)

    def keep(self, item: Item) -> None:
        """Add a message that is not sent, so that no fetch returns it again before it is settled."""
        self._put(item)

    @property
    def anything_sendable(self) -> bool:
        """Whether a message may be ready to be sent."""
        return bool(self._sendable)

    def destinations(self) -> list[str]:
        """Destinations with messages to send, the one served longest ago first."""
        return list(self._sendable)

    def sendable(
        self, destination: str, limit: int, *, max_bytes: int = sys.maxsize, pipelined: bool = False
    ) -> list[Item]:
        """Take up to `limit` messages that may go now, each the next of its queue, and no more once they have
        `max_bytes`. `pipelined`: several of a queue, in order, and equal parts for all queues."""
        ready = self._sendable.pop(destination, deque())
        going: list[Item] = []
        while ready and len(going) < limit and max_bytes > 0:
            queue = ready.popleft()
            queue.queued = False
            if queue.sending or not queue.waiting:
                continue
            part = max(1, (limit - len(going)) // (len(ready) + 1)) if pipelined else 1
            while queue.waiting and len(queue.sending) < part and max_bytes > 0:
                item = queue.waiting.pop(0)
                item.queued = False
                queue.sending[item] = None
                max_bytes -= item.size
            going += queue.sending
        if ready:
            self._sendable[destination] = ready
        return going

    def has_sendable(self, destination: str) -> bool:
        return any(not queue.sending and queue.waiting for queue in self._sendable.get(destination, ()))

    def confirmed(self, item: Item) -> None:
        """The message was delivered or dead-lettered: the next of its queue may be sent."""
        if (queue := self._queues.get(item.queue)) is not None and item in queue.sending:
            del queue.sending[item]
            if queue.sending:
                return
            self._continue(queue)

    def accepted(self, items: Iterable[Item]) -> list[Item]:
        """The transport accepted these: the next of each queue may go. Returns those that their queues still wait for;
        the result of any other one is stale."""
        current: list[Item] = []
        for item in items:
            # As `sends` and `confirmed` say, without their calls: this runs for every message.
            queue = self._queues.get(item.queue)
            if queue is not None and item in queue.sending and self._items.get(item.position) is item:
                del queue.sending[item]
                if not queue.sending:
                    self._continue(queue)
                current.append(item)
        return current

    def has(self, queue: QueueKey) -> bool:
        """Whether a message of this queue is in flight."""
        return queue in self._queues

    def is_sending(self, queue: QueueKey) -> bool:
        """Whether a message of this queue is being sent."""
        return queue in self._queues and bool(self._queues[queue].sending)

    def holds(self, item: Item) -> bool:
        """Whether this very item is in flight; once its lane was lost it is not, even if its message is again."""
        return self._items.get(item.position) is item

    def sends(self, item: Item) -> bool:
        """Whether this very item is what its queue waits for; the result of any other one is stale."""
        return self.holds(item) and (queue := self._queues.get(item.queue)) is not None and item in queue.sending

    def stopped(self, item: Item) -> list[Item]:
        """The message will be retried: stop its queue. Returns those behind it that were not sent; they stay in flight
        until `forget`."""
        if not self.sends(item):
            return []
        queue = self._queues[item.queue]
        del queue.sending[item]
        followers, queue.waiting = queue.waiting, []
        for follower in followers:
            follower.queued = False
        self._tidy(queue)
        return followers

    def forget(self, items: Iterable[Item]) -> None:
        """These are no longer in flight: settled, or released."""
        for item in items:
            if self._items.get(item.position) is item:
                self._remove(item)
            if item.queued:
                item.queued = False
                queue = self._queues[item.queue]
                queue.waiting.remove(item)
                self._tidy(queue)

    def unsent(self, destination: str | None = None, lanes: Collection[int] | None = None) -> list[Item]:
        """Messages that wait for their turn, for one destination or of some lanes."""
        return [
            item
            for queue in self._queues.values()
            if (destination is None or queue.key[2] == destination) and (lanes is None or queue.key[0] in lanes)
            for item in queue.waiting
        ]

    def unsent_from(self, positions: Iterable[tuple[int, str]]) -> list[Item]:
        """Those of these that wait for their turn, and everything behind them in their queues."""
        found: list[Item] = []
        for position in positions:
            item = self._items.get(position)
            queue = None if item is None else self._queues.get(item.queue)
            if item is not None and queue is not None and item.queued:
                found += queue.waiting[queue.waiting.index(item) :]
        return list(dict.fromkeys(found))

    def drop_lanes(self, lanes: Collection[int]) -> None:
        """Another relay owns these lanes: forget everything of them."""
        for item in [item for item in self._items.values() if item.message.lane in lanes]:
            self._remove(item)
        for key in [key for key in self._queues if key[0] in lanes]:
            queue = self._queues.pop(key)
            for item in queue.waiting:
                item.queued = False
            queue.waiting, queue.sending = [], {}

    def has_quarantined(self) -> bool:
        """Whether a message in quarantine is in flight."""
        return any(item.counted_before_send for item in self._items.values())

    def lanes(self) -> set[int]:
        """Lanes of which something is in flight."""
        return {lane for lane, count in self._by_lane.items() if count}

    def in_flight_longer_than(self, limit: float, now: float) -> Iterator[InFlightMessage]:
        """Messages that operators see as PROCESSING."""
        for item in self._items.values():
            if (age := now - item.since) > limit:
                yield InFlightMessage(event_id=item.message.event_id, destination=item.message.destination, seconds=age)

    def _continue(self, queue: _KeyQueue) -> None:
        """No message of the queue is being sent: make the next one sendable, if there is one."""
        if not queue.waiting:
            del self._queues[queue.key]
        elif not queue.queued:
            self._offer(queue)

    def _offer(self, queue: _KeyQueue) -> None:
        queue.queued = True
        ready = self._sendable.get(queue.key[2])
        if ready is None:
            self._sendable[queue.key[2]] = deque([queue])
        else:
            ready.append(queue)

    def _tidy(self, queue: _KeyQueue) -> None:
        if not queue.sending and not queue.waiting:
            self._queues.pop(queue.key, None)

    def _put(self, item: Item) -> None:
        position = item.position
        if (before := self._items.get(position)) is not None:
            self._remove(before)
        self._items[position] = item
        self._counts[item.destination] += 1
        self._by_lane[item.queue[0]] += 1
        self.bytes += item.size

    def _remove(self, item: Item) -> None:
        del self._items[item.position]
        self.bytes -= item.size
        self._by_lane[item.queue[0]] -= 1
        destination = item.destination
        count = self._counts[destination] - 1
        if count:
            self._counts[destination] = count
        else:
            del self._counts[destination]


def _sequence(item: Item) -> int:
    return item.message.id


def overtaken_items(results: Sequence[tuple[Item, SendResult]]) -> set[Item]:
    """Messages that failed although a later one of their key was accepted: a lost connection would have failed that
    one, too."""
    found: set[Item] = set()
    accepted: set[QueueKey] = set()
    for item, result in reversed(results):
        if result is None:
            accepted.add(item.queue)
        elif isinstance(result, UnavailableError) and item.queue in accepted:
            found.add(item)
    return found
