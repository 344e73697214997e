"""Threads for functions of the user that block.

They are daemons, unlike those of `concurrent.futures`: a handler that never returns must not keep a drained process
from exiting.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class _Job(NamedTuple, Generic[T]):
    call: Callable[[], T]
    context: Context
    future: asyncio.Future[T]


class Threads(Generic[T]):
    """Up to `most` threads, started as they are needed."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._started = 0
        self._idle = threading.Semaphore(0)
        self._jobs: SimpleQueue[_Job[T] | None] = SimpleQueue()

    def begin(self, call: Callable[[], T]) -> asyncio.Future[T]:
        """Have `call` called in the caller's context; a future that is done before its turn is not called at all."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put(_Job(call, copy_context(), future))
        if not self._idle.acquire(blocking=False) and self._started < self.most:
            self._started += 1
            name = f"pillarbox-handler-{self._started}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        return future

    def close(self) -> None:
        """Let every thread end as soon as it has nothing to do; does not wait for any."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            if not job.future.done():
                _carry_out(job)
            del job  # or the last event would be kept until the next one comes
        self._jobs.put(None)

    def _next(self) -> _Job[T] | None:
        try:
            return self._jobs.get_nowait()
        except Empty:
            self._idle.release()
            return self._jobs.get()


def _carry_out(job: _Job[T]) -> None:
    try:
        answer: Callable[[], None] = partial(job.future.set_result, job.context.run(job.call))
    except BaseException as error:
        answer = partial(job.future.set_exception, _raisable(error))
    try:
        job.future.get_loop().call_soon_threadsafe(_unless_done, job.future, answer)
    except RuntimeError:
        return  # the loop is closed: nobody waits any more


def _raisable(error: BaseException) -> BaseException:
    """What can be raised where somebody awaits it: to a coroutine, two exceptions mean its own end."""
    if not isinstance(error, StopIteration | GeneratorExit):
        return error
    raised = RuntimeError(f"the function raised {type(error).__name__}")
    raised.__cause__ = error
    return raised


def _unless_done(future: asyncio.Future[T], answer: Callable[[], None]) -> None:
    if not future.done():
        answer()
