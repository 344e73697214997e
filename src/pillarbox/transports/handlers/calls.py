"""The handler calls of one batch, and their results in the order in which they arrive.

A task or a wake-up of a thread for each event would take longer than most handlers. So the events of a batch share:

- One task calls the async handlers one after another, as long as each returns without waiting. As soon as one waits,
  the task belongs to that call, and every later event gets its own task. Each call has its own context: no event sees
  the context variables of another.
- Sync handlers wait in one queue for the threads, see `pillarbox.threads`.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import Coroutine, Generator, Sequence
from contextvars import Context, copy_context
from types import coroutine
from typing import Any

from pillarbox.core.errors import RejectedError, SendError, UnavailableError, primary_text
from pillarbox.core.transport import Result
from pillarbox.transports.handlers.received import HandlerContext, ReceivedEvent
from pillarbox.transports.handlers.registry import Handler

LONGEST_ERROR = 500
"""Characters of an exception's first line that are kept."""
CLOSE_TIMEOUT = 5.0
"""Seconds to wait for handlers that were cancelled or closed."""

CLOSED = "handlers: closed while the relay stops; the event is handled after the next start"


class Call:
    """The call of a handler with one event; a job for a thread if the handler is sync."""

    __slots__ = ("_calls", "_result", "context", "event", "handler", "is_late", "own_context", "position", "task")

    def __init__(
        self, calls: Calls, position: int, handler: Handler, event: ReceivedEvent, context: HandlerContext
    ) -> None:
        self._calls = calls
        self.position = position
        self.handler = handler
        self.event = event
        self.context = context
        self.task: asyncio.Task[None] | None = None
        """The task of an async call that has begun."""
        self.is_late = False
        """Whether it timed out."""
        self.own_context = copy_context()
        self._result: Result | KeyboardInterrupt = None

    @property
    def dropped(self) -> bool:
        return self.position not in self._calls.open

    def do(self) -> None:
        self._calls.running.add(self)
        try:
            self._result = self.own_context.run(_called, self, self._calls.timeout)
        except KeyboardInterrupt as error:
            self._result = error
        finally:
            self._calls.running.discard(self)

    def done(self) -> None:
        if isinstance(self._result, KeyboardInterrupt):
            self._calls.interrupt(self._result)
        else:
            self._calls.finish(self, self._result)

    def timed_out(self) -> RejectedError:
        return _timed_out(self.handler.name, self._calls.timeout)


class Calls:
    """The calls of one batch; used from one event loop. `running` contains the running calls of all batches."""

    def __init__(self, running: set[Call], timeout: float | None) -> None:
        self.running = running
        """Threads change it, too: adding to a set and removing from it are atomic."""
        self.timeout = timeout
        self.open: dict[int, Call] = {}
        """Calls without a result, by position."""
        self._loop = asyncio.get_running_loop()
        self._results: list[tuple[int, Result]] = []
        self._interrupt: KeyboardInterrupt | None = None
        self._waiter: asyncio.Future[None] | None = None

    def add(self, position: int, handler: Handler, event: ReceivedEvent, context: HandlerContext) -> Call:
        """Add a call that has not begun."""
        call = self.open[position] = Call(self, position, handler, event, context)
        return call

    def begin(self, calls: Sequence[Call]) -> None:
        """Begin the calls of async handlers."""
        waiting = deque(calls)
        self._start(waiting)
        # After the first step of that task: a call that it has not begun by then follows one that waits.
        self._loop.call_soon(self._start_each, waiting)

    def reject(self, position: int, result: Result) -> None:
        """Set the result of an event without a handler."""
        self._put(position, result)

    def finish(self, call: Call, result: Result) -> None:
        """Set the result of a call, unless it has one."""
        if self.open.pop(call.position, None) is not None:
            self._results.append((call.position, result))
            if self._waiter is not None:
                self._wake()

    async def next(self) -> list[tuple[int, Result]]:
        """Wait for results since the previous call, at least one; each with its position."""
        if not self._results and self._interrupt is None:
            self._waiter = self._loop.create_future()
            await self._waiter
        if self._interrupt is not None:
            raise self._interrupt
        results, self._results = self._results, []
        return results

    def expire(self) -> None:
        """Time out: cancel async calls. Calls in threads cannot be stopped."""
        for call in list(self.open.values()):
            if call.task is not None:
                call.is_late = True
                call.task.cancel()
            elif call.handler.is_async:
                self.finish(call, call.timed_out())

    async def abandon(self) -> None:
        """Cancel async calls and wait for them a while; calls in threads get a result at once and run on."""
        tasks: list[asyncio.Task[None]] = []
        for call in list(self.open.values()):
            if call.task is None:
                self.finish(call, UnavailableError(CLOSED))
            else:
                tasks.append(call.task)
                call.task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_TIMEOUT)

    def interrupt(self, error: KeyboardInterrupt) -> None:
        """Raise the interrupt in the task that waits for results."""
        self._interrupt = error
        self._wake()

    def _put(self, position: int, result: Result) -> None:
        self._results.append((position, result))
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _start_each(self, waiting: deque[Call]) -> None:
        while waiting:
            self._start(deque([waiting.popleft()]))

    def _start(self, waiting: deque[Call]) -> None:
        # The loop references the task until it begins, then the call does.
        self._loop.create_task(self._run(waiting))

    async def _run(self, waiting: deque[Call]) -> None:
        task = asyncio.current_task()
        while waiting and task is not None and not task.cancelling():
            call = waiting.popleft()
            if call.position not in self.open:
                continue
            call.task = task
            self.running.add(call)
            try:
                work = _awaited(call)
                try:
                    awaited = call.own_context.run(work.send, None)
                except StopIteration as returned:
                    result: Result = returned.value
                else:
                    result = await _in_context(call.own_context, work, awaited)
            finally:
                self.running.discard(call)
            self.finish(call, call.timed_out() if call.is_late else result)


@coroutine
def _in_context(context: Context, work: Coroutine[Any, Any, Result], awaited: Any) -> Generator[Any, Any, Result]:
    """Continue `work`, which is waiting: every step in `context` and in the caller's task."""
    while True:
        try:
            step, given = work.send, (yield awaited)
        except BaseException as error:
            step, given = work.throw, error
        try:
            awaited = context.run(step, given)
        except StopIteration as returned:
            result: Result = returned.value
            return result


async def _awaited(call: Call) -> Result:
    try:
        await call.handler.function(call.event, call.context)
    except KeyboardInterrupt:
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        # A cancellation of something that the handler awaits is an error like any other.
        return UnavailableError(CLOSED) if task is not None and task.cancelling() else _error_of(call.handler, error)
    except BaseException as error:
        return _error_of(call.handler, error)
    return None


def _called(call: Call, timeout: float | None) -> Result:
    handler = call.handler
    began = time.monotonic()
    try:
        returned = handler.function(call.event, call.context)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return _error_of(handler, error)
    if returned is not None and inspect.isawaitable(returned):
        if inspect.iscoroutine(returned):
            returned.close()
        return RejectedError(
            f"handler {handler.name} returned an awaitable, which is not awaited; define it with `async def`"
        )
    if timeout is not None and time.monotonic() - began > timeout:
        return _timed_out(handler.name, timeout)
    return None


def _error_of(handler: Handler, error: BaseException) -> SendError:
    """A SendError of the handler passes; any other exception, also SystemExit, rejects the message."""
    if isinstance(error, (RejectedError, UnavailableError)):
        return error
    rejected = RejectedError(f"handler {handler.name} raised {_first_line(error)}")
    rejected.__cause__ = error
    return rejected


def _first_line(error: BaseException) -> str:
    try:
        text = primary_text(error).strip()
    except Exception:  # its `__str__` may raise
        text = ""
    first = text.splitlines()[0][:LONGEST_ERROR] if text else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _timed_out(name: str, timeout: float | None) -> RejectedError:
    return RejectedError(f"handler {name} took longer than {timeout:g} s; raise handlers.timeout or make it faster")
