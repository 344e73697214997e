"""How long the fetch loop waits between two fetches, and what ends the wait.

While few events arrive, producers notify the relay at every commit, and each notification is a fetch. A notification
costs the producers a lock at commit: while many arrive, the relay tells them to stop and fetches by itself.

The fetch loop never waits for the statement that tells producers so: another task writes it. Events that commit before
that statement cause no notification, so the relay fetches once more as soon as it is written.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress

from pillarbox.core.clock import Clock, seconds
from pillarbox.core.store import Store
from pillarbox.relay.config import RelayConfig

FIRST_PAUSE = 0.002
"""Seconds until the next fetch after one that left nothing behind; then twice as long after each empty one."""
NOTIFIED_PAUSE = 0.05
"""The same after a fetch that left nothing behind, while producers notify the relay of what comes."""
WINDOW = 0.25
"""Seconds over which the fetches that brought events are counted."""
MANY = 10
"""A fetch that brought a quarter of a batch or more counts as so many."""
MOST_NOTIFIED = 100
"""Fetches with events in one window, beyond which producers are told not to notify."""
FEWEST_UNNOTIFIED = 40
"""Fetches with events in one window, below which producers are told to notify again."""
MOST_EMPTY = 20
"""Notifications in a row without an event for this relay, after which it fetches by itself for a while."""
AWAKE_FOR = 5.0
AWAKE_PAUSE = 0.1
SHORTEST_SLEEP = 0.08


class IdleWait:
    """The waits of one relay."""

    def __init__(
        self,
        *,
        relay: str,
        store: Store,
        clock: Clock,
        config: RelayConfig,
        next_reason: Callable[[], float] = lambda: math.inf,
    ) -> None:
        """next_reason: seconds until there is a reason to fetch: a retry is due, or a destination may be probed, which
        needs an event."""
        self.relay = relay
        self._wakeup = store.wakeup
        self._clock = clock
        self._adaptive = config.adaptive
        self._notifications = config.wakeup == "notify"
        self._many = config.batch_size // 4
        self._longest = seconds(config.poll_interval)
        self._sleep = max(SHORTEST_SLEEP, 3 * self._longest)
        self._next_reason = next_reason
        self._pause = FIRST_PAUSE
        self._woken = asyncio.Event()
        self._changed = asyncio.Event()
        self._decided = asyncio.Event()
        self._wanted = False
        """Whether producers should notify this relay."""
        self._asleep_until = 0.0
        """Until when producers notify this relay, on the monotonic clock; 0: they do not."""
        self._awake_until = 0.0
        self._notified = False
        self._relies = False
        """The pauses since the last fetch that brought events began long, because producers notified this relay."""
        self._empty = 0
        self._arrivals = 0
        self._window_began = -math.inf

    def wake(self) -> None:
        """There may be something to fetch."""
        self._woken.set()
        self._changed.set()

    def notice(self) -> None:
        """Something changed that `until_change` may wait for; there is no more to fetch because of it."""
        self._changed.set()

    async def until_change(self, longest: float) -> None:
        """Wait for a change, at most so many seconds."""
        self._changed.clear()
        await _wait(self._changed, longest)

    async def listen(self) -> None:
        """Wake the fetch loop at every notification."""
        while True:
            if await self._wakeup.wait(self._longest):
                self._notified = True
                self.wake()

    async def tell_producers(self) -> None:
        """Write whether producers should notify this relay, whenever that changes."""
        self._decided.set()
        while True:
            await self._decided.wait()
            self._decided.clear()
            now = self._clock.monotonic()
            if self._wanted and not self._is_notified(now):
                before, until = self._asleep_until, now + self._sleep
                await self._wakeup.request(self.relay, self._sleep)
                self._asleep_until = until
                if self._clock.monotonic() >= before:
                    self.wake()  # events that committed before this statement caused no notification
            elif not self._wanted and self._asleep_until:
                self._asleep_until = 0.0
                await self._wakeup.request(self.relay, 0)

    def begin_fetch(self) -> None:
        """A fetch begins: it does not see what wakes the relay from here on."""
        self._woken.clear()

    async def after_fetch(self, found: int, *, took_all: bool = False) -> None:
        """Wait until the next fetch: not at all where this one left events behind, longer after each empty one.

        took_all: it left none behind. If a notification caused it, and producers still notify the relay, the next fetch
        waits for them.
        """
        notified = self._notified
        self._decide(found)
        notified = notified and self._wanted and self._wakeup.notifies
        if found:
            self._pause = FIRST_PAUSE
            if not took_all:
                return
            if notified:
                self._pause = NOTIFIED_PAUSE
        elif self._relies and not self._wakeup.notifies:
            # A long pause must not outlive the notifications that it relied on.
            self._pause = FIRST_PAUSE
        self._relies = notified if found else self._relies and self._wakeup.notifies
        await _wait(self._woken, self._next_pause())
        self._pause = min(self._longest, self._pause * 2)

    def _next_pause(self) -> float:
        if not self._adaptive:
            return self._longest
        longest = min(self._longest, AWAKE_PAUSE) if self._clock.monotonic() < self._awake_until else self._longest
        return min(self._pause, longest, max(FIRST_PAUSE, self._next_reason()))

    def _is_notified(self, now: float) -> bool:
        """Whether producers notify this relay for so long that it need not ask again."""
        return now < self._asleep_until - self._sleep / 2

    def _decide(self, found: int) -> None:
        """Decide whether producers should notify this relay."""
        now = self._clock.monotonic()
        if found:
            self._arrivals += MANY if found >= self._many else 1
            self._empty = 0
        elif self._notified:
            self._empty += 1
        self._notified = False
        if self._empty >= MOST_EMPTY:
            self._empty = 0
            self._awake_until = now + AWAKE_FOR
        if self._arrivals > MOST_NOTIFIED or now < self._awake_until:
            self._wanted = False
        if now - self._window_began > WINDOW:
            few = self._arrivals < (MOST_NOTIFIED if self._wanted else FEWEST_UNNOTIFIED)
            self._wanted = self._notifications and few and now >= self._awake_until
            self._arrivals, self._window_began = 0, now
        if (not self._is_notified(now)) if self._wanted else self._asleep_until:
            self._decided.set()


async def _wait(event: asyncio.Event, longest: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(longest):
            await event.wait()
