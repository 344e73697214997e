"""Timeouts that progress extends, shared by everything that waits for one peer: a connection, or a transport."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")

_CHECKS = 4
"""How often progress is checked within the limit."""


async def within(limit: float, work: Awaitable[T]) -> T:
    """Await `work` for at most `limit` seconds. Raises TimeoutError."""
    async with asyncio.timeout(limit):
        return await work


class StallWatch:
    """A context for each of many waits for one peer. Calls `stalled` when `progress` has returned the same value for
    the whole `limit` while any wait lasted: after exactly `limit` seconds if nothing moves at all, otherwise after 0.75
    to 1.25 times `limit` seconds since the last progress.

    Entering and leaving set two attributes and no timer, because a send of a single message does both.
    """

    __slots__ = ("_began", "_limit", "_loop", "_progress", "_seen", "_since", "_stalled", "_timer", "_waits")

    def __init__(self, limit: float, progress: Callable[[], object], stalled: Callable[[], object]) -> None:
        self._limit = limit
        self._progress = progress
        self._stalled = stalled
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._waits = 0
        self._began = -math.inf
        """When the first of the present waits began."""
        self._seen: object = None
        self._since = -math.inf
        """When progress was last seen."""

    def __enter__(self) -> None:
        if not self._waits:
            self._began = self._loop.time()
            if self._timer is None:
                self._timer = self._loop.call_at(self._began + self._limit / _CHECKS, self._check)
        self._waits += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waits -= 1

    def _check(self) -> None:
        self._timer = None
        if not self._waits:
            return
        now, seen = self._loop.time(), self._progress()
        if self._since < self._began:
            # The first check of these waits: what moved may have moved before them.
            self._since = self._began
        elif seen != self._seen:
            self._since = now
        self._seen = seen
        deadline = self._since + self._limit
        if now >= deadline:
            # A wait that does not end by that must not leave later ones without a limit.
            self._began, deadline = now, now + self._limit
            self._stalled()
        self._timer = self._loop.call_at(min(deadline, now + self._limit / _CHECKS), self._check)


class StallTimeout:
    """A timeout for all tasks that wait for one peer: as soon as it stalls, see `StallWatch`, they time out."""

    __slots__ = ("_expired", "_tasks", "_watch")

    def __init__(self, limit: float, progress: Callable[[], object]) -> None:
        self._watch = StallWatch(limit, progress, self._expire)
        self._tasks: set[asyncio.Task[object]] = set()
        self._expired: set[asyncio.Task[object]] = set()

    async def wait(self, work: Awaitable[T]) -> T:
        """Await `work`, once per task at a time. Raises TimeoutError."""
        if (task := asyncio.current_task()) is None:
            raise RuntimeError("a timeout needs a running task: await it inside one")
        before = task.cancelling()
        self._tasks.add(task)
        try:
            with self._watch:
                return await work
        except asyncio.CancelledError:
            # As asyncio.timeout does: a cancellation from elsewhere stays one.
            if task in self._expired and task.uncancel() <= before:
                raise TimeoutError from None
            raise
        finally:
            self._tasks.discard(task)
            self._expired.discard(task)

    def _expire(self) -> None:
        self._expired |= self._tasks
        for task in self._tasks:
            task.cancel()
