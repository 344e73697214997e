"""Timeouts that progress extends, shared by everything that waits for one peer: a connection, or a transport."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TypeVar
from weakref import ref

T = TypeVar("T")

_CHECKS = 4
"""How often progress is checked within the limit."""


async def within(limit: float, work: Awaitable[T]) -> T:
    """Await `work` for at most `limit` seconds. Raises TimeoutError."""
    async with asyncio.timeout(limit):
        return await work


def raise_if_cancelled(error: BaseException) -> None:
    """Raise a cancellation of the current task again. One that comes from inside, as an awaited task was cancelled, is
    a failure like any other."""
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
        raise error


class StallWatch:
    """A context for each of many waits for one peer. Calls `stalled` if for the whole `limit` no wait began and
    `progress` returned the same value: after exactly `limit` seconds if nothing moves at all, otherwise at most 1.25
    times `limit` seconds after the last progress. Thus no wait ends before its own `limit`.

    An exception of `progress` is reported, and counts as no progress. A timer that is left does not keep the watch, and
    what its functions refer to, in memory.
    """

    __slots__ = ("__weakref__", "_limit", "_loop", "_progress", "_seen", "_since", "_stalled", "_timer", "_waits")

    def __init__(self, limit: float, progress: Callable[[], object], stalled: Callable[[], object]) -> None:
        self._limit = limit
        self._progress = progress
        self._stalled = stalled
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._waits = 0
        self._seen: object = None
        self._since = 0.0
        """When a wait last began, or progress was last seen."""

    def __enter__(self) -> None:
        self._since = now = self._loop.time()
        if not self._waits:
            self._seen = self._current()  # what moved before counts for none of these waits
            if self._timer is None:
                self._timer = self._loop.call_at(now + self._limit / _CHECKS, _check, ref(self))
        self._waits += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waits -= 1

    def check(self) -> None:
        """Called by its timer."""
        self._timer = None
        if not self._waits:
            return
        now, seen = self._loop.time(), self._current()
        if seen != self._seen:
            self._seen, self._since = seen, now
        is_stalled = now >= self._since + self._limit
        if is_stalled:
            # A wait that does not end by that must not leave later ones without a limit.
            self._since = now
        at = min(self._since + self._limit, now + self._limit / _CHECKS)
        self._timer = self._loop.call_at(at, _check, ref(self))
        if is_stalled:
            self._stalled()

    def _current(self) -> object:
        try:
            return self._progress()
        except Exception as error:
            self._loop.call_exception_handler({"message": "the progress of a peer is unknown", "exception": error})
            return self._seen


def _check(watch: Callable[[], StallWatch | None]) -> None:
    if (used := watch()) is not None:
        used.check()


class StallTimeout:
    """A timeout for all tasks that wait for one peer: as soon as it stalls, see `StallWatch`, they time out."""

    __slots__ = ("_cancelled", "_watch")

    def __init__(self, limit: float, progress: Callable[[], object]) -> None:
        self._watch = StallWatch(limit, progress, self._expire)
        self._cancelled: dict[asyncio.Task[object], int] = {}
        """The tasks that wait, and how often this timeout cancelled each: again at every further stall, if its work
        takes longer than the limit to end."""

    async def wait(self, work: Awaitable[T]) -> T:
        """Await `work`, once per task at a time. Raises TimeoutError."""
        if (task := asyncio.current_task()) is None:
            raise RuntimeError("a timeout needs a running task: await it inside one")
        before = task.cancelling()
        self._cancelled[task] = 0
        try:
            with self._watch:
                return await work
        except asyncio.CancelledError:
            count = self._cancelled[task]
            if count and task.cancelling() - count <= before:
                raise TimeoutError from None
            raise  # cancelled from elsewhere
        finally:
            # Also if the work returned although it was cancelled: the task goes on.
            for _ in range(self._cancelled.pop(task)):
                task.uncancel()

    def _expire(self) -> None:
        for task in self._cancelled:
            self._cancelled[task] += 1
            task.cancel()
