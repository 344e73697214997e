"""An event loop with virtual time and a seeded order of everything that is ready.

It runs one callback at a time, chosen at random by its seed, so that all interleavings of tasks are possible and a seed
reproduces one of them. If nothing is ready, time jumps to the next timer. Sockets, files, threads and signals are not
available: `asyncio.AbstractEventLoop` raises NotImplementedError for them.
"""

from __future__ import annotations

import asyncio
import random
from asyncio import events
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context
from heapq import heappop, heappush
from itertools import count
from types import CoroutineType
from typing import Any, Self, TypeVar, TypeVarTuple, Unpack, cast
from weakref import WeakSet

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

DAY = 86_400.0
MAX_STEPS = 1_000_000
CLEANUP_SECONDS = 60.0
"""Virtual seconds for cancelled tasks to clean up."""


class SimulationError(Exception):
    """The simulation cannot continue."""


class Deadlock(SimulationError):
    """Nothing is ready or scheduled, and the awaited result is missing."""


class Runaway(SimulationError):
    """The run exceeded its virtual time or its steps."""


class _Numbered:
    """A task hashed by its number instead of its address, so that sets of tasks have the same order in every run."""

    number: int

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return self is other


class _Task(_Numbered, asyncio.Task[Any]):
    pass


class _Future(_Numbered, asyncio.Future[Any]):
    pass


class SimulatedLoop(asyncio.AbstractEventLoop):
    """One schedule, identified by its seed; bounded in virtual seconds and in steps."""

    def __init__(self, *, seed: int | str = 0, max_time: float = DAY, max_steps: int = MAX_STEPS) -> None:
        self._order = random.Random(f"schedule {seed}")
        self._max_time = max_time
        self._max_steps = max_steps
        self._now = 0.0
        self._steps = 0
        self._ready: list[asyncio.Handle] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = count()
        self._tasks: WeakSet[_Task] = WeakSet()
        self._running = False
        self._closed = False
        self.unhandled_errors: list[str] = []
        """Errors that were not caught, such as that of a task that was never awaited."""

    @classmethod
    def of(cls, *, seed: int | str = 0, max_time: float = DAY, max_steps: int = MAX_STEPS) -> Self:
        """Return a new loop; type checkers consider the class abstract, because it omits many methods."""
        return cls(seed=seed, max_time=max_time, max_steps=max_steps)

    @property
    def steps(self) -> int:
        """Number of callbacks that have run."""
        return self._steps

    def time(self) -> float:
        return self._now

    def block(self, seconds: float) -> None:
        """Let time pass while nothing runs, as a callback does that takes this long."""
        self._now += seconds

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Called by TimerHandle; a cancelled timer is skipped when it is due."""

    def create_future(self) -> asyncio.Future[Any]:
        future = _Future.__new__(_Future)
        future.number = next(self._numbers)
        _Future.__init__(future, loop=self)
        return future

    def create_task(
        self, coro: Generator[Any, None, T] | Coroutine[Any, Any, T], *, name: str | None = None, **options: Any
    ) -> asyncio.Task[T]:
        # Numbered before it is created: creating it adds it to a set.
        task = _Task.__new__(_Task)
        task.number = next(self._numbers)
        _Task.__init__(task, coro, loop=self, name=name or f"task {task.number}", **options)
        self._tasks.add(task)
        return task

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        task = asyncio.ensure_future(cast("Awaitable[T]", future), loop=self)
        before = events._get_running_loop()
        events._set_running_loop(self)
        self._running = True
        try:
            while not task.done():
                self._step()
        finally:
            self._running = False
            events._set_running_loop(before)
        return task.result()

    def _step(self) -> None:
        self._move_due_timers()
        if not self._ready:
            self._advance_time()
        self._steps += 1
        if self._steps > self._max_steps:
            raise Runaway(f"more than {self._max_steps} steps\n{self._waiting_tasks()}")
        chosen = self._order.randrange(len(self._ready))
        self._ready[chosen], self._ready[-1] = self._ready[-1], self._ready[chosen]
        handle = self._ready.pop()
        if not handle.cancelled():
            handle._run()

    def _move_due_timers(self) -> None:
        while self._timers and (self._timers[0][0] <= self._now or self._timers[0][2].cancelled()):
            _, _, timer = heappop(self._timers)
            if not timer.cancelled():
                self._ready.append(timer)

    def _advance_time(self) -> None:
        """Advance the time to the next timer."""
        if not self._timers:
            raise Deadlock(f"nothing is ready and nothing is scheduled\n{self._waiting_tasks()}")
        if self._timers[0][0] > self._max_time:
            raise Runaway(f"more than {self._max_time} virtual seconds\n{self._waiting_tasks()}")
        self._now = self._timers[0][0]
        self._move_due_timers()

    def _waiting_tasks(self) -> str:
        return "\n".join(f"  {task.get_name()} waits at {_await_chain(task)}" for task in self.unfinished())

    def unfinished(self) -> list[asyncio.Task[Any]]:
        """Return tasks that are not done, in the order of creation."""
        return sorted(asyncio.all_tasks(self), key=hash)

    def cancel_remaining_tasks(self) -> None:
        """Cancel the remaining tasks and let them clean up, for a while beyond the bounds."""
        rest = self.unfinished()
        for task in rest:
            task.cancel()
        if rest:
            self._max_time = self._now + CLEANUP_SECONDS
            self._max_steps = self._steps + int(CLEANUP_SECONDS) * 1000
            with suppress(SimulationError):
                self.run_until_complete(asyncio.wait(rest, timeout=CLEANUP_SECONDS))

    def collect_unhandled_errors(self) -> None:
        """Record the errors of tasks that were never awaited.

        A task reports its own error when it is freed, but the moment differs between Python versions.
        """
        for task in sorted(self._tasks, key=hash):
            if task.done() and task._log_traceback:
                self.call_exception_handler(
                    {"message": "Task exception was never retrieved", "exception": task.exception()}
                )

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True
        self._ready.clear()
        self._timers.clear()

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.unhandled_errors.append(f"{context.get('message')}: {context.get('exception')!r}")


def _await_chain(task: asyncio.Task[Any]) -> str:
    """Return the coroutines of a task, from the outermost to the one that waits."""
    steps: list[str] = []
    coroutine: object = task.get_coro()
    while isinstance(coroutine, CoroutineType) and coroutine.cr_frame is not None:
        steps.append(f"{coroutine.__qualname__}:{coroutine.cr_frame.f_lineno}")
        coroutine = coroutine.cr_await
    return " > ".join(steps)
