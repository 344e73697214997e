"""The calls of one batch of events, and their answers in the order in which they come.

A task or a wake-up of a thread for each event would cost more than most handlers do. So the events of a batch share:

- Async handlers are called one after another by one task, for as long as each returns without waiting for anything. As
  soon as one waits, that task is its own, and every event after it gets a task. Each call has its own context: no event
  sees the context variables of another.
- Sync handlers lie in one queue for the threads, see `pillarbox.threads`.
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
GOODBYE = 5.0
"""Seconds for which the end of what was cancelled or closed is waited for."""

CLOSED = "handlers: closed while the relay stops; the event is handled after the next start"


class Call:
    """One event, called with its handler; a job for a thread if that is sync."""

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
        """That of an async call, once it has begun."""
        self.is_late = False
        """Its time was up before it returned."""
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
            self._calls.answer(self, self._result)

    def took_too_long(self) -> RejectedError:
        return _took_too_long(self.handler.name, self._calls.timeout)


class Calls:
    """Those of one batch; used on one event loop. `running` has every call that runs, of all batches."""

    def __init__(self, running: set[Call], timeout: float | None) -> None:
        self.running = running
        """Threads add to it, too: adding to a set and taking away from it are atomic."""
        self.timeout = timeout
        self.open: dict[int, Call] = {}
        """Those without an answer, by position."""
        self._loop = asyncio.get_running_loop()
        self._answers: list[tuple[int, Result]] = []
        self._interrupt: KeyboardInterrupt | None = None
        self._waiter: asyncio.Future[None] | None = None

    def add(self, position: int, handler: Handler, event: ReceivedEvent, context: HandlerContext) -> Call:
        """A call that is to begin."""
        call = self.open[position] = Call(self, position, handler, event, context)
        return call

    def begin(self, calls: Sequence[Call]) -> None:
        """Call the async handlers of these."""
        waiting = deque(calls)
        self._start(waiting)
        # After the first step of that task: what it has not begun by then is behind a call that waits.
        self._loop.call_soon(self._start_apart, waiting)

    def refuse(self, position: int, result: Result) -> None:
        """Answer what is not called at all."""
        self._put(position, result)

    def answer(self, call: Call, result: Result) -> None:
        """Answer a call, unless it was answered before."""
        if self.open.pop(call.position, None) is not None:
            self._answers.append((call.position, result))
            if self._waiter is not None:
                self._wake()

    async def next(self) -> list[tuple[int, Result]]:
        """The answers that came since the last time, at least one, with their positions."""
        if not self._answers and self._interrupt is None:
            self._waiter = self._loop.create_future()
            await self._waiter
        if self._interrupt is not None:
            raise self._interrupt
        answers, self._answers = self._answers, []
        return answers

    def expire(self) -> None:
        """Their time is up: cancel async calls; what runs in a thread cannot be stopped."""
        for call in list(self.open.values()):
            if call.task is not None:
                call.is_late = True
                call.task.cancel()
            elif call.handler.is_async:
                self.answer(call, call.took_too_long())

    async def abandon(self) -> None:
        """End what can be ended, and wait for that a while; what blocks a thread is answered without waiting for it."""
        tasks: list[asyncio.Task[None]] = []
        for call in list(self.open.values()):
            if call.task is None:
                self.answer(call, UnavailableError(CLOSED))
            else:
                tasks.append(call.task)
                call.task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=GOODBYE)

    def interrupt(self, error: KeyboardInterrupt) -> None:
        """Raise it where the answers are waited for."""
        self._interrupt = error
        self._wake()

    def _put(self, position: int, result: Result) -> None:
        self._answers.append((position, result))
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _start_apart(self, waiting: deque[Call]) -> None:
        while waiting:
            self._start(deque([waiting.popleft()]))

    def _start(self, waiting: deque[Call]) -> None:
        # The loop keeps it until it begins, then the call does.
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
            self.answer(call, call.took_too_long() if call.is_late else result)


@coroutine
def _in_context(context: Context, work: Coroutine[Any, Any, Result], awaited: Any) -> Generator[Any, Any, Result]:
    """Go on with `work`, which waits for something: every step in `context` and in the caller's task."""
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
        # Its own doing, for example awaiting something that was cancelled, is an error like any other.
        return UnavailableError(CLOSED) if task is not None and task.cancelling() else _verdict(call.handler, error)
    except BaseException as error:
        return _verdict(call.handler, error)
    return None


def _called(call: Call, timeout: float | None) -> Result:
    handler = call.handler
    began = time.monotonic()
    try:
        returned = handler.function(call.event, call.context)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return _verdict(handler, error)
    if returned is not None and inspect.isawaitable(returned):
        if inspect.iscoroutine(returned):
            returned.close()
        return RejectedError(
            f"handler {handler.name} returned something to await, which nobody does; make it `async def`"
        )
    if timeout is not None and time.monotonic() - began > timeout:
        return _took_too_long(handler.name, timeout)
    return None


def _verdict(handler: Handler, error: BaseException) -> SendError:
    """What it says of itself, if it does; else the message is at fault. SystemExit ends a handler, not the relay."""
    if isinstance(error, (RejectedError, UnavailableError)):
        return error
    verdict = RejectedError(f"handler {handler.name} raised {_told(error)}")
    verdict.__cause__ = error
    return verdict


def _told(error: BaseException) -> str:
    try:
        text = primary_text(error).strip()
    except Exception:  # an exception that cannot even say what it is
        text = ""
    first = text.splitlines()[0][:LONGEST_ERROR] if text else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _took_too_long(name: str, timeout: float | None) -> RejectedError:
    return RejectedError(f"handler {name} took longer than {timeout:g} s; raise handlers.timeout or make it faster")
