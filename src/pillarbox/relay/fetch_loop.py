"""The fetch loop: what to fetch next besides ready messages, how long to wait, and what ends the wait.

While few events arrive, producers notify the relay at every commit, and each notification is a fetch. A notification
costs the producers a lock at commit: while many arrive, the relay tells them to stop and fetches by itself. The fetch
loop does not wait for that statement. Events that commit before it cause no notification: the relay fetches once more.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from pillarbox.core.clock import Clock, seconds
from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.message import KeyQueue, Message
from pillarbox.relay.in_flight import QueueKey, queue_of

if TYPE_CHECKING:
    from pillarbox.relay.fetch import Fetcher
    from pillarbox.relay.relay import RelayContext
    from pillarbox.relay.send import Sender

FIRST_FETCH_PAUSE = 0.002
"""Seconds until the next fetch after one that left nothing behind; then twice as long after each empty one."""
NOTIFIED_PAUSE = 0.05
"""The same after a fetch that left nothing behind, while producers notify the relay of what comes."""
ARRIVALS_PERIOD = 0.25
"""Seconds over which fetches that brought events are counted."""
LARGE_FETCH_WEIGHT = 10  # a fetch that brought a quarter of a batch or more counts as this many
MAX_NOTIFIED = 100
"""Fetches with events in one period, beyond which producers are told not to notify."""
MIN_UNNOTIFIED = 40
"""Fetches with events in one period, below which producers are told to notify again."""
MAX_EMPTY = 20
"""Notifications in a row without an event for this relay, after which it fetches by itself for a while."""
AWAKE_FOR = 5.0  # seconds: for how long it then fetches by itself
AWAKE_PAUSE = 0.1  # seconds: the pause between two of these fetches
PAUSE_PER_MESSAGE = 20e-6
"""Seconds between two fetches for each message in flight: every fetch carries and steps over all of them."""
FEW_FACTOR = 5
"""Factor of that pause if only a few more messages may be in flight, for example because one key fills the limit."""
MAX_FETCH_PAUSE = 0.1
"""Seconds between two fetches, however many are in flight; and never more than `poll_interval`."""
MIN_SLEEP = 0.08  # seconds: for a shorter wait, the relay does not ask producers to notify it
RETRY_STEP = 0.02  # seconds: times at which retries are due are rounded up to this
MAX_RETRY_TIMES = 500  # due times of retries that are kept, the next ones; the periodic fetch finds later retries


class Wakeups:
    """The events on which the loops of one relay wait."""

    def __init__(self) -> None:
        self.fetching = asyncio.Event()  # there may be something to fetch
        self.sending = asyncio.Event()  # there may be something to send
        self._changed = asyncio.Event()

    def fetch(self) -> None:
        """Wake the fetch loop."""
        self.fetching.set()
        self._changed.set()

    def send(self) -> None:
        """Wake the senders."""
        self.sending.set()

    def all(self) -> None:
        """Wake the fetch loop and the senders."""
        self.fetch()
        self.sending.set()

    def notice(self) -> None:
        """Wake the tasks that wait in `until_change`; nothing new is there to fetch."""
        self._changed.set()

    async def until_send(self, limit: float) -> None:
        """Wait until there may be something to send, at most this many seconds."""
        self.sending.clear()
        timer = asyncio.get_running_loop().call_later(limit, self.sending.set)
        try:
            await self.sending.wait()
        finally:
            timer.cancel()

    async def until_change(self, limit: float) -> None:
        """Wait for a change, at most this many seconds."""
        self._changed.clear()
        await _wait(self._changed, limit)


class FetchSchedule:
    """What to fetch next besides ready messages: ordering queues to continue, orphaned queues, and retries."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.queues: deque[KeyQueue] = deque()  # ordering queues whose first message is gone: the waiting ones may come
        self._retries: set[float] = set()  # times at which retries that this relay wrote are due
        self.next_due = 0.0  # when to fetch scheduled messages next, on the monotonic clock
        self.next_orphans = 0.0  # when to search for orphaned queues next, on the monotonic clock
        self.orphans_after: KeyQueue | None = None  # where that search continues; None: at the beginning
        self.exhausted = False
        """The last round put everything in flight that it could have seen: there is no more to fetch until something
        commits or falls due."""

    def continue_queues(self, queues: Iterable[KeyQueue]) -> None:
        """Fetch the next waiting messages of these ordering queues."""
        known = set(self.queues)
        self.queues.extend(queue for queue in dict.fromkeys(queues) if queue not in known)

    def search_orphans(self) -> None:
        """Search for orphaned queues now: lanes changed their owner, or an operator removed a message."""
        self.orphans_after = None
        self.next_orphans = 0.0

    def due_within(self, delay: float) -> None:
        """Fetch scheduled messages with the first round after this many seconds."""
        self.next_due = min(self.next_due, self._clock.monotonic() + delay)

    def retry_within(self, delay: float) -> None:
        """A retry is due after this many seconds: fetch it then."""
        self._retries.add(math.ceil((self._clock.monotonic() + delay) / RETRY_STEP) * RETRY_STEP)
        if len(self._retries) > MAX_RETRY_TIMES:
            self._retries.remove(max(self._retries))

    def next_retry(self) -> float:
        """Seconds until the next retry is due; those that are overdue wait for something else."""
        now = self._clock.monotonic()
        return min((at - now for at in self._retries if at > now), default=math.inf)

    def begin_due(self, now: float, *, every: float) -> bool:
        """Whether to fetch scheduled messages now; if so, the next time is `every` seconds later."""
        past = {at for at in self._retries if at <= now}
        if now < self.next_due and not past:
            return False
        self.next_due = now + every
        self._retries -= past
        return True


class FetchLoop:
    """The fetch loop and its waits."""

    def __init__(self, context: RelayContext) -> None:
        config = context.config
        self._context = context
        self._min_batch = context.config.min_batch
        self._wakeups = context.wakeups
        self._notifications = context.store.wakeup
        self._clock = context.clock
        self._adaptive = config.adaptive
        self._enabled = config.wakeup == "notify"
        self._many = config.batch_size // 4
        self._poll_interval = seconds(config.poll_interval)
        self._sleep = max(MIN_SLEEP, 3 * self._poll_interval)
        self._max_fetch_pause = min(MAX_FETCH_PAUSE, self._poll_interval)
        self._pause = FIRST_FETCH_PAUSE
        self.rounds: int | None = None
        """Rounds that the fetch loop completed; None before it began."""
        self._decided = asyncio.Event()
        self._wanted = False
        """Whether producers should notify this relay."""
        self._asleep_until = 0.0
        """Until when producers notify this relay, on the monotonic clock; 0: they do not."""
        self._awake_until = 0.0
        self._notified = False
        self._relies = False
        """The pauses since the last fetch with events began long, because producers notified this relay."""
        self._empty = 0
        self._arrivals = 0
        self._window_began = -math.inf

    async def run(self, fetcher: Fetcher, sender: Sender) -> None:
        """Fetch round after round, until the relay drains."""
        lifecycle = self._context.lifecycle
        self.rounds = self.rounds or 0
        while not lifecycle.draining:
            if (pause := self._pause_before(fetcher)) > 0:
                await self._wakeups.until_change(pause)
                continue
            self.begin_fetch()
            try:
                found = await fetcher.fetch()
            except StoreUnavailableError:
                # What it had put in flight before a write of its own failed can be sent all the same.
                sender.begin()
                raise
            self.rounds += 1
            if found:
                sender.begin()
            await self.after_fetch(found, took_all=self._context.schedule.exhausted)
        await asyncio.Event().wait()

    def _pause_before(self, fetcher: Fetcher) -> float:
        """Seconds until the next fetch is worth its cost: with more messages in flight it costs more and returns less.
        0 if ready messages are known to be pending and many more may be in flight."""
        few = fetcher.capacity < self._min_batch
        if fetcher.more and not few:
            return 0.0
        factor = FEW_FACTOR if few else 1
        pause = min(PAUSE_PER_MESSAGE * len(self._context.in_flight) * factor, self._max_fetch_pause)
        return fetcher.began_at + pause - self._clock.monotonic()

    async def listen(self) -> None:
        """Wake the fetch loop at every notification."""
        while True:
            if await self._notifications.wait(self._poll_interval):
                self._notified = True
                self._wakeups.fetch()

    async def tell_producers(self) -> None:
        """Write whether producers should notify this relay, whenever that changes."""
        self._decided.set()
        while True:
            await self._decided.wait()
            self._decided.clear()
            now = self._clock.monotonic()
            if self._wanted and not self._is_notified(now):
                before, until = self._asleep_until, now + self._sleep
                await self._notifications.request(self._context.relay, self._sleep)
                self._asleep_until = until
                if self._clock.monotonic() >= before:
                    self._wakeups.fetch()  # events that committed before this statement caused no notification
            elif not self._wanted and self._asleep_until:
                self._asleep_until = 0.0
                await self._notifications.request(self._context.relay, 0)

    def begin_fetch(self) -> None:
        """A fetch begins: it does not see events that wake the relay from now on."""
        self._wakeups.fetching.clear()

    async def after_fetch(self, found: int, *, took_all: bool = False) -> None:
        """Wait until the next fetch: not at all where this one left events behind, longer after each empty one.
        took_all: it left none behind. If a notification caused it, and producers still notify the relay, the next
        fetch waits for them."""
        notified = self._notified
        self._decide(found)
        notified = notified and self._wanted and self._notifications.notifies
        if found:
            self._pause = FIRST_FETCH_PAUSE
            if not took_all:
                return
            if notified:
                self._pause = NOTIFIED_PAUSE
        elif self._relies and not self._notifications.notifies:
            # A long pause must not outlive the notifications that it relied on.
            self._pause = FIRST_FETCH_PAUSE
        self._relies = notified if found else self._relies and self._notifications.notifies
        await _wait(self._wakeups.fetching, self._next_pause())
        self._pause = min(self._poll_interval, self._pause * 2)

    def _next_pause(self) -> float:
        if not self._adaptive:
            return self._poll_interval
        limit = AWAKE_PAUSE if self._clock.monotonic() < self._awake_until else math.inf
        return min(self._pause, self._poll_interval, limit, max(FIRST_FETCH_PAUSE, self._next_reason()))

    def _next_reason(self) -> float:
        """Seconds until there is a reason to fetch: a retry is due, or a destination may be probed, which needs an
        event."""
        return min(self._context.destinations.next_probe(), self._context.schedule.next_retry())

    def _is_notified(self, now: float) -> bool:
        """Whether producers notify this relay for so long that it need not ask again."""
        return now < self._asleep_until - self._sleep / 2

    def _decide(self, found: int) -> None:
        """Decide whether producers should notify this relay."""
        now = self._clock.monotonic()
        if found:
            self._arrivals += LARGE_FETCH_WEIGHT if found >= self._many else 1
            self._empty = 0
        elif self._notified:
            self._empty += 1
        self._notified = False
        if self._empty >= MAX_EMPTY:
            self._empty = 0
            self._awake_until = now + AWAKE_FOR
        if self._arrivals > MAX_NOTIFIED or now < self._awake_until:
            self._wanted = False
        if now - self._window_began > ARRIVALS_PERIOD:
            few = self._arrivals < (MAX_NOTIFIED if self._wanted else MIN_UNNOTIFIED)
            self._wanted = self._enabled and few and now >= self._awake_until
            self._arrivals, self._window_began = 0, now
        if (not self._is_notified(now)) if self._wanted else self._asleep_until:
            self._decided.set()


async def _wait(event: asyncio.Event, limit: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(limit):
            await event.wait()


class FetchBarrier:
    """Keeps a message back that a fetch brought without knowing of an earlier one of its ordering queue.

    Between the decision that a message waits and the first fetch begun after its commit, later messages of its queue
    come up as if nothing was before them. They stay in the table until a fetch that sees the earlier decision.

    Fetches are numbered as they begin. A queue may have several decisions on their way into the store at once, and one
    round takes messages from several fetches: a queue is free again only once no decision is unwritten, and only for
    fetches begun after the last one was written.
    """

    def __init__(self) -> None:
        self._unwritten: Counter[QueueKey] = Counter()
        self._known_after: dict[QueueKey, int] = {}
        self.fetches = 0

    def stop(self, queue: QueueKey) -> None:
        """A decision was made: until `written` is called, no fetch knows of it."""
        self._unwritten[queue] += 1

    def written(self, queue: QueueKey) -> None:
        """A decision is committed, or void because its lane was lost: every later fetch knows."""
        self._unwritten[queue] -= 1
        if self._unwritten[queue] <= 0:
            del self._unwritten[queue]
        self._known_after[queue] = self.fetches

    def released(self, queue: QueueKey) -> None:
        """A message of the queue was released: a fetch that is under way left it out."""
        self._known_after[queue] = self.fetches

    @property
    def inactive(self) -> bool:
        """Whether no queue is stopped: `holds_back` is False for every message."""
        return not self._unwritten and not self._known_after

    def begin_round(self) -> None:
        """No fetch is under way: all that follow know whatever is written."""
        self._known_after.clear()

    def clear(self) -> None:
        """The relay ended: none of its decisions is on the way any more."""
        self._unwritten.clear()
        self._known_after.clear()

    def holds_back(self, message: Message, destination: str, fetch: int) -> bool:
        """Whether a message that this fetch brought may come after one of its queue that the fetch did not know of."""
        if message.key is None:
            return False
        own, whole_key = queue_of(message, destination), queue_of(message, "")
        return self._unknown_to(own, fetch) or self._unknown_to(whole_key, fetch)

    def _unknown_to(self, queue: QueueKey, fetch: int) -> bool:
        return queue in self._unwritten or fetch <= self._known_after.get(queue, -1)
