"""Waiting for something that takes long: as long as it gets anywhere."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from types import TracebackType
from weakref import WeakValueDictionary

_LOOKS = 4
"""How often progress is looked for within the limit."""


class Patience:
    """`asyncio.timeout(limit)`, begun anew whenever `progress` answers something else than before.

    Raises TimeoutError once that has not happened for `limit` seconds, or a quarter longer; after exactly `limit`
    seconds if it has not happened at all. `progress` is asked on entering, and then every quarter of the limit.
    """

    __slots__ = ("_before", "_given_up", "_limit", "_progress", "_seen", "_task", "_watch", "deadline")

    def __init__(self, limit: float, progress: Callable[[], object]) -> None:
        self._limit = limit
        self._progress = progress
        self._given_up = False

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("only a task can have patience")
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
        if self._given_up and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def next_look(self, now: float) -> float:
        """When to look again at the latest."""
        return min(self.deadline, now + self._limit / _LOOKS)

    def look(self, now: float) -> bool:
        """Whether there is reason to wait on; if not, what is inside is cancelled."""
        if (seen := self._progress()) != self._seen:
            self._seen = seen
            self.deadline = now + self._limit
        self._given_up = now >= self.deadline
        if self._given_up:
            self._task.cancel()
        return not self._given_up


class _Watch:
    """Checks everything that waits in one event loop, with one timer. Nearly all of it ends long before there is
    anything to check, and a timer for each would cost more than all the rest of waiting."""

    __slots__ = ("__weakref__", "_next", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[Patience, None] = {}
        self._next = math.inf

    def add(self, patience: Patience, now: float) -> None:
        self._waiting[patience] = None
        if (at := patience.next_look(now)) < self._next:
            self._look_at(at)

    def remove(self, patience: Patience) -> None:
        self._waiting.pop(patience, None)

    def _look_at(self, at: float) -> None:
        self._next = at
        asyncio.get_running_loop().call_at(at, self._look, at)

    def _look(self, at: float) -> None:
        if at != self._next:
            return  # a shorter limit came meanwhile, with a timer of its own
        self._next = math.inf
        now = asyncio.get_running_loop().time()
        try:
            for patience in list(self._waiting):
                # What timed out is not checked again, nor what raises in `progress`.
                del self._waiting[patience]
                if patience.look(now):
                    self._waiting[patience] = None
        finally:
            if self._waiting:
                self._look_at(min(patience.next_look(now) for patience in self._waiting))


_watches: WeakValueDictionary[asyncio.AbstractEventLoop, _Watch] = WeakValueDictionary()
"""Its timer and the waits keep a watch alive. So it ends with its loop, or when nothing waits."""
