"""Threads for functions of the user that block.

They are daemons, unlike those of `concurrent.futures`: a handler that never returns must not keep a drained process
from exiting.

Handing a job to a thread and its answer back costs ten times what a short function does. So jobs lie in one queue, from
which a thread takes one after another, and it wakes the loop when it finds no other. As many threads are woken as need
no longer than `AT_ONCE` by what jobs took of late. After that time the loop looks by itself: at what is done, and
whether jobs still wait, for example because the one before them hangs; then each gets a thread of its own.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")

AT_ONCE = 0.001
"""Seconds that jobs may wait for one another before each gets a thread."""
LONGEST_PAUSE = 0.1
"""Seconds between two looks at jobs for which there is no thread; from `AT_ONCE` on each pause is twice the last."""
LEAST_DOUBT = 0.00005
"""Seconds that a job may take more than others did before it counts as an exception."""


class Job(Protocol):
    """Something to do on a thread."""

    @property
    def dropped(self) -> bool:
        """Its answer is not wanted any more: if it has not begun, it is not done at all."""
        ...

    def do(self) -> None:
        """Do it, and keep what came of it; on a thread. Raises nothing."""
        ...

    def done(self) -> None:
        """Tell what came of it; on the loop that began it."""
        ...


class Threads:
    """Up to `most` threads, started as they are needed; begun from one event loop at a time."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._started = 0
        self._idle = threading.Semaphore(0)
        self._jobs: deque[tuple[Job, _Returned]] = deque()
        self._calls: SimpleQueue[bool] = SimpleQueue()
        """One entry wakes one thread, which then does what there is; False ends it."""
        self._usual = 0.0
        """Seconds that a job takes, roughly. Threads write it without a lock: a lost update does no harm."""
        self._returned: _Returned | None = None

    def begin(self, call: Callable[[], T]) -> asyncio.Future[T]:
        """Have `call` called in the caller's context; a future that is done before its turn is not called at all."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.begin_all([_Awaited(call, future)])
        return future

    def begin_all(self, jobs: Sequence[Job]) -> None:
        """Have these jobs done, beside each other as far as there are threads."""
        loop = asyncio.get_running_loop()
        if (returned := self._returned) is None or returned.loop is not loop:
            returned = self._returned = _Returned(loop)
        self._jobs.extend([(job, returned) for job in jobs])
        self._wake(min(len(jobs), 1 + int(len(jobs) * self._usual / AT_ONCE)))
        if not returned.is_watched:
            self._watch(returned, AT_ONCE)

    def close(self) -> None:
        """Let every thread end as soon as it has nothing to do; does not wait for any."""
        self._calls.put(False)

    def _watch(self, returned: _Returned, pause: float) -> None:
        returned.is_watched = True
        returned.loop.call_later(pause, self._look, returned, pause)

    def _look(self, returned: _Returned, pause: float) -> None:
        # In this order: a thread that leaves something to be told takes another job after that.
        waiting = len(self._jobs)
        returned.tell()
        returned.is_watched = False
        if waiting:
            self._wake(waiting)
            self._watch(returned, min(2 * pause, LONGEST_PAUSE))

    def _wake(self, count: int) -> None:
        for _ in range(count):
            self._calls.put(True)
            if not self._idle.acquire(blocking=False) and self._started < self.most:
                self._started += 1
                name = f"pillarbox-handler-{self._started}"
                threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while self._called():
            self._do_what_there_is()
        self._calls.put(False)

    def _called(self) -> bool:
        try:
            return self._calls.get_nowait()
        except Empty:
            self._idle.release()
            return self._calls.get()

    def _do_what_there_is(self) -> None:
        while True:
            try:
                job, returned = self._jobs.popleft()
            except IndexError:
                return
            if not job.dropped:
                began = time.perf_counter()
                job.do()
                # One that takes long says little; several in a row do.
                took = min(time.perf_counter() - began, 2 * self._usual + LEAST_DOUBT)
                self._usual = (self._usual + took) / 2
                returned.add(job, at_once=not self._jobs)
            del job, returned  # or the last event would be kept until the next one comes


class _Returned:
    """Jobs of one loop that are done, and not yet told to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.is_watched = False
        """The loop will look by itself."""
        self._jobs: deque[Job] = deque()
        self._is_woken = False

    def add(self, job: Job, *, at_once: bool) -> None:
        """On a thread. If not at once, the loop is told with a later one, or when it looks."""
        self._jobs.append(job)
        if at_once and not self._is_woken:
            self._is_woken = True
            try:
                self.loop.call_soon_threadsafe(self.tell)
            except RuntimeError:
                return  # the loop is closed: no task waits any more

    def tell(self) -> None:
        """On the loop."""
        # First of all: what is added from here on wakes the loop again.
        self._is_woken = False
        while self._jobs:
            self._jobs.popleft().done()


class _Awaited(Generic[T]):
    """A job with a future that a task awaits."""

    def __init__(self, call: Callable[[], T], future: asyncio.Future[T]) -> None:
        self._call = call
        self._context = copy_context()
        self._future = future
        self._answer: Callable[[], None] | None = None

    @property
    def dropped(self) -> bool:
        return self._future.done()

    def do(self) -> None:
        try:
            self._answer = partial(self._future.set_result, self._context.run(self._call))
        except BaseException as error:
            self._answer = partial(self._future.set_exception, _raisable(error))

    def done(self) -> None:
        if self._answer is not None and not self._future.done():
            self._answer()


def _raisable(error: BaseException) -> BaseException:
    """What can be raised where a task awaits it: to a coroutine, two exceptions mean its own end."""
    if not isinstance(error, StopIteration | GeneratorExit):
        return error
    raised = RuntimeError(f"the function raised {type(error).__name__}")
    raised.__cause__ = error
    return raised
