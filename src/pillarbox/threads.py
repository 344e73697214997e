"""A thread pool for blocking functions of the application.

The threads are daemons, unlike those of `concurrent.futures`: a handler that never returns must not keep a drained
process from exiting.

Passing a job to a thread and its result back takes ten times as long as a short function. So the jobs wait in one
queue, from which a thread takes one after another; it wakes up the event loop when the queue is empty. The pool wakes
up as many threads as are needed to finish the jobs within `BATCH_SECONDS`, by the duration of recent jobs. After that
time the loop polls for results, and wakes up a thread for every job that still waits, for example because the one
before it hangs.
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

from pillarbox.core.errors import UnavailableError

T = TypeVar("T")

BATCH_SECONDS = 0.001
"""Seconds that jobs may wait for one another before each gets its own thread."""
MAX_POLL_PAUSE = 0.1
"""The most seconds between two polls; each pause is twice the one before it, from `BATCH_SECONDS` on."""
OUTLIER_MARGIN = 0.00005
"""Seconds beyond twice the usual duration after which a job counts as an outlier."""


class Job(Protocol):
    """A job for a thread."""

    @property
    def dropped(self) -> bool:
        """Whether the caller no longer waits for the result: a job that has not begun is not run."""
        ...

    def do(self) -> None:
        """Run the job in a thread and keep its result. Raises nothing."""
        ...

    def done(self) -> None:
        """Deliver the result in the event loop that began the job."""
        ...


class Threads:
    """Up to `most` threads, started on demand; used from one event loop at a time."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._started = 0
        self._idle = threading.Semaphore(0)
        self._jobs: deque[tuple[Job, _Returned]] = deque()
        self._calls: SimpleQueue[bool] = SimpleQueue()
        """One entry wakes up one thread, which runs jobs until there are none; False ends it."""
        self._usual = 0.0
        """The usual duration of a job. Threads write it without a lock: a lost update does no harm."""
        self._returned: _Returned | None = None
        self._refusal = ""
        """Why the system refused to start a thread, the last time that it did."""

    def begin(self, call: Callable[[], T]) -> asyncio.Future[T]:
        """Call `call` in a thread, in the caller's context; not at all if the future is done before. Raises
        UnavailableError."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.begin_all([_Awaited(call, future)])
        return future

    def begin_all(self, jobs: Sequence[Job]) -> None:
        """Run these jobs, concurrently if there are threads. Raises UnavailableError if there is no thread, and the
        process cannot start one: then none of them runs."""
        loop = asyncio.get_running_loop()
        if (returned := self._returned) is None or returned.loop is not loop:
            returned = self._returned = _Returned(loop)
        self._jobs.extend([(job, returned) for job in jobs])
        self._wake(min(len(jobs), 1 + int(len(jobs) * self._usual / BATCH_SECONDS)))
        if jobs and not self._started:
            self._jobs.clear()
            raise UnavailableError(
                f"no thread can be started for functions that are not async: {self._refusal}; raise the limit on "
                "threads of this process, or its memory"
            )
        if not returned.is_watched:
            self._watch(returned, BATCH_SECONDS)

    def close(self) -> None:
        """End every thread as soon as it is idle; does not wait for them."""
        self._calls.put(False)

    def _watch(self, returned: _Returned, pause: float) -> None:
        returned.is_watched = True
        returned.loop.call_later(pause, self._poll, returned, pause)

    def _poll(self, returned: _Returned, pause: float) -> None:
        # In this order: a thread adds its result before it takes the next job.
        waiting = len(self._jobs)
        returned.deliver()
        returned.is_watched = False
        if waiting:
            self._wake(waiting)
            self._watch(returned, min(2 * pause, MAX_POLL_PAUSE))

    def _wake(self, count: int) -> None:
        for _ in range(count):
            if self._calls.qsize() < self.most:  # more would wake no thread, and pile up while all hang
                self._calls.put(True)
            if not self._idle.acquire(blocking=False) and self._started < self.most:
                name = f"pillarbox-handler-{self._started + 1}"
                try:
                    threading.Thread(target=self._work, name=name, daemon=True).start()
                except RuntimeError as error:  # the process is at its limit: the threads there are run the jobs
                    self._refusal = str(error)
                    return
                self._started += 1

    def _work(self) -> None:
        while self._called():
            self._run_jobs()
        self._calls.put(False)

    def _called(self) -> bool:
        try:
            return self._calls.get_nowait()
        except Empty:
            self._idle.release()
            return self._calls.get()

    def _run_jobs(self) -> None:
        while True:
            try:
                job, returned = self._jobs.popleft()
            except IndexError:
                return
            if not job.dropped:
                began = time.perf_counter()
                job.do()
                # One outlier changes the usual duration little; several in a row do.
                took = min(time.perf_counter() - began, 2 * self._usual + OUTLIER_MARGIN)
                self._usual = (self._usual + took) / 2
                returned.add(job, at_once=not self._jobs)
            del job, returned  # or the last event would stay referenced until the next one


class _Returned:
    """Finished jobs whose results one event loop has not received yet."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.is_watched = False
        """Whether the loop polls."""
        self._jobs: deque[Job] = deque()
        self._is_woken = False

    def add(self, job: Job, *, at_once: bool) -> None:
        """Add a finished job, in a thread. `at_once` wakes up the loop; else a later job does."""
        self._jobs.append(job)
        if at_once and not self._is_woken:
            self._is_woken = True
            try:
                self.loop.call_soon_threadsafe(self.deliver)
            except RuntimeError:
                return  # the loop is closed: no task waits for the result

    def deliver(self) -> None:
        """Deliver the results, in the event loop."""
        # First, so that a job added from now on wakes up the loop again.
        self._is_woken = False
        while self._jobs:
            self._jobs.popleft().done()


class _Awaited(Generic[T]):
    """A job with a future that a task awaits."""

    def __init__(self, call: Callable[[], T], future: asyncio.Future[T]) -> None:
        self._call = call
        self._context = copy_context()
        self._future = future
        self._deliver_result: Callable[[], None] | None = None

    @property
    def dropped(self) -> bool:
        return self._future.done()

    def do(self) -> None:
        try:
            self._deliver_result = partial(self._future.set_result, self._context.run(self._call))
        except BaseException as error:
            self._deliver_result = partial(self._future.set_exception, _raisable(error))

    def done(self) -> None:
        if self._deliver_result is not None and not self._future.done():
            self._deliver_result()


def _raisable(error: BaseException) -> BaseException:
    """An exception that a coroutine may raise: StopIteration and GeneratorExit would end it silently."""
    if not isinstance(error, StopIteration | GeneratorExit):
        return error
    raised = RuntimeError(f"the function raised {type(error).__name__}")
    raised.__cause__ = error
    return raised
