"""A timeout that progress extends."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from types import TracebackType
from weakref import WeakValueDictionary

_CHECKS = 4
"""How often progress is checked within the limit."""


class ProgressTimeout:
    """`asyncio.timeout(limit)` that starts over whenever `progress` returns another value than before.

    Raises TimeoutError after `limit` to 1.25 times `limit` seconds without progress; after exactly `limit` seconds if
    there was no progress at all. `progress` is called on entering, and then every quarter of the limit.
    """

    __slots__ = ("_before", "_expired", "_limit", "_progress", "_seen", "_task", "_watch", "deadline")

    def __init__(self, limit: float, progress: Callable[[], object]) -> None:
        self._limit = limit
        self._progress = progress
        self._expired = False

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("a ProgressTimeout needs a running task: await it inside one")
        self._task = task
        self._before = task.cancelling()
        self._seen = self._progress()
        now = loop.time()
        self.deadline = now + self._limit
        watch = _watches.get(loop)
        if watch is None:
            watch = _watches[loop] = _Watch()
        self._watch = watch
        watch.add(self, now)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.remove(self)
        # As asyncio.timeout does: a cancellation from elsewhere stays one.
        if self._expired and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def next_check(self, now: float) -> float:
        """When to check for progress again at the latest."""
        return min(self.deadline, now + self._limit / _CHECKS)

    def check(self, now: float) -> bool:
        """Check for progress; False: the limit has passed, and the task inside is cancelled."""
        if (seen := self._progress()) != self._seen:
            self._seen = seen
            self.deadline = now + self._limit
        self._expired = now >= self.deadline
        if self._expired:
            self._task.cancel()
        return not self._expired


class _Watch:
    """Checks all timeouts of one event loop with one timer. Nearly all of them end long before the first check, and a
    timer for each would cost more than everything else they do."""

    __slots__ = ("__weakref__", "_next", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[ProgressTimeout, None] = {}
        self._next = math.inf

    def add(self, timeout: ProgressTimeout, now: float) -> None:
        self._waiting[timeout] = None
        if (at := timeout.next_check(now)) < self._next:
            self._check_at(at)

    def remove(self, timeout: ProgressTimeout) -> None:
        self._waiting.pop(timeout, None)

    def _check_at(self, at: float) -> None:
        self._next = at
        asyncio.get_running_loop().call_at(at, self._check, at)

    def _check(self, at: float) -> None:
        if at != self._next:
            return  # a shorter limit came meanwhile, with a timer of its own
        self._next = math.inf
        now = asyncio.get_running_loop().time()
        try:
            for timeout in list(self._waiting):
                # What timed out is not checked again, nor what raises in `progress`.
                del self._waiting[timeout]
                if timeout.check(now):
                    self._waiting[timeout] = None
        finally:
            if self._waiting:
                self._check_at(min(timeout.next_check(now) for timeout in self._waiting))


_watches: WeakValueDictionary[asyncio.AbstractEventLoop, _Watch] = WeakValueDictionary()
"""Its timer and the timeouts that it checks keep a watch alive: it ends with its loop, or with the last timeout."""
