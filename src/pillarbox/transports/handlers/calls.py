"""The calls of one batch of events: what a handler receives, and the results in the order in which calls return.

A task or a wake-up of a thread for each event would cost more than most handlers do. So the events of a batch share:

- One task calls the async handlers one after another as long as each returns without waiting. As soon as one waits,
  that task is its own, and every event after it gets a task. Each call has its own context variables.
- Sync handlers share one queue of the threads, see `pillarbox.threads`.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass
from datetime import datetime
from types import coroutine
from typing import Any, NamedTuple

from pillarbox.core.errors import RejectedError, SendError, UnavailableError, primary_text
from pillarbox.core.payload import Upcast, decoded
from pillarbox.core.transport import Outgoing, SendResult

MAX_ERROR = 500
"""Characters of an exception's first line that are kept."""
CLOSE_TIMEOUT = 5.0  # seconds to wait for handlers that were cancelled or closed
CLOSED = "handlers: closed while the relay stops; the event is handled after the next start"
_UNREAD = object()


class HandlerContext(NamedTuple):
    """The context of one call."""

    attempt: int
    """The number of this send, from 1; attempts and deferrals count."""
    headers: Mapping[str, str]
    epoch: int
    """A fencing token: it grows whenever another relay takes over the events of this key. A handler may reject events
    with a lower epoch than it has seen."""
    destination: str


class ReceivedEvent:
    """An event as its handler sees it: a read-only view on the message, which decodes nothing until asked."""

    __slots__ = ("_out", "_payload", "_upcast")

    def __init__(self, out: Outgoing, upcast: Upcast | None = None) -> None:
        self._out = out
        self._upcast = upcast
        self._payload = _UNREAD

    @property
    def event_id(self) -> str:
        """The same on every attempt: handlers detect duplicates by it."""
        return self._out.message.event_id

    @property
    def event_type(self) -> str:
        return self._out.message.event_type

    @property
    def aggregate_type(self) -> str | None:
        return self._out.message.aggregate_type

    @property
    def aggregate_id(self) -> str | None:
        return self._out.message.aggregate_id

    @property
    def key(self) -> str | None:
        """The ordering key: events of one key are handled one after another, in order."""
        return self._out.message.key

    @property
    def payload(self) -> Any:
        """JSON as Python values, upcast if there is an upcaster; anything else as bytes. Raises PermanentError for
        invalid JSON."""
        if self._payload is _UNREAD:
            self._payload = decoded(
                self._out.body,
                self._out.content_type,
                event_id=self.event_id,
                event_type=self.event_type,
                version=self.schema_version,
                upcast=self._upcast,
            )
        return self._payload

    @property
    def payload_bytes(self) -> bytes:
        """The payload as it was sent."""
        return self._out.body

    @property
    def content_type(self) -> str:
        return self._out.content_type

    @property
    def headers(self) -> Mapping[str, str]:
        return self._out.headers

    @property
    def schema_version(self) -> int:
        """The version with which the event was recorded; `payload` may be upcast to a later one."""
        return self._out.message.schema_version

    @property
    def correlation_id(self) -> str | None:
        return self._out.message.correlation_id

    @property
    def causation_id(self) -> str | None:
        return self._out.message.causation_id

    @property
    def trace_id(self) -> str | None:
        return self._out.message.trace_id

    @property
    def occurred_at(self) -> datetime:
        return self._out.message.occurred_at

    def __repr__(self) -> str:
        return f"<ReceivedEvent {self.event_type} {self.event_id}>"


HandlerFunction = Callable[[ReceivedEvent, HandlerContext], Any]
"""Sync or async; its result is ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A function, its name, and its event types or patterns."""

    name: str
    event_types: tuple[str, ...]
    function: HandlerFunction
    is_async: bool


class Call:
    """One event for one handler; a job for a thread if the handler is sync."""

    __slots__ = ("_calls", "_result", "context", "event", "handler", "is_late", "own_context", "position", "task")

    def __init__(
        self, calls: Calls, position: int, handler: Handler, event: ReceivedEvent, context: HandlerContext
    ) -> None:
        self._calls = calls
        self.position = position
        self.handler = handler
        self.event = event
        self.context = context
        self.task: asyncio.Task[None] | None = None  # of an async call, once it has begun
        self.is_late = False  # the timeout expired before it returned
        self.own_context = copy_context()
        self._result: SendResult | KeyboardInterrupt = None

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


class Calls:
    """The calls of one batch; used on one event loop. `running` has the running calls of all batches."""

    def __init__(self, running: set[Call], timeout: float | None) -> None:
        self.running = running
        """Threads change it, too: adding to a set and discarding from it are atomic."""
        self.timeout = timeout
        self.open: dict[int, Call] = {}
        """Calls without a result, by position."""
        self._loop = asyncio.get_running_loop()
        self._results: list[tuple[int, SendResult]] = []
        self._interrupt: KeyboardInterrupt | None = None
        self._waiter: asyncio.Future[None] | None = None

    def begin(self, calls: Sequence[Call]) -> None:
        """Call the async handlers of these."""
        waiting = deque(calls)
        self._start(waiting)
        # After the first step of that task: calls that it has not begun by then would wait for another call.
        self._loop.call_soon(self._start_each, waiting)

    def reject(self, position: int, result: SendResult) -> None:
        """Set the result of an event without a handler."""
        self._results.append((position, result))
        self._wake()

    def finish(self, call: Call, result: SendResult) -> None:
        """Set the result of a call, unless it has one."""
        if self.open.pop(call.position, None) is not None:
            self._results.append((call.position, result))
            if self._waiter is not None:
                self._wake()

    async def next(self) -> list[tuple[int, SendResult]]:
        """The results since the last time, at least one, with their positions."""
        if not self._results and self._interrupt is None:
            self._waiter = self._loop.create_future()
            await self._waiter
        if self._interrupt is not None:
            raise self._interrupt
        results, self._results = self._results, []
        return results

    def expire(self) -> None:
        """The timeout has expired: cancel async calls; a call in a thread cannot be stopped."""
        for call in list(self.open.values()):
            if call.task is not None:
                call.is_late = True
                call.task.cancel()
            elif call.handler.is_async:
                self.finish(call, _timed_out(call.handler.name, self.timeout))

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
        """Raise it from `next`."""
        self._interrupt = error
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
                    result: SendResult = returned.value
                else:
                    result = await _in_context(call.own_context, work, awaited)
            finally:
                self.running.discard(call)
            self.finish(call, _timed_out(call.handler.name, self.timeout) if call.is_late else result)


@coroutine
def _in_context(
    context: Context, work: Coroutine[Any, Any, SendResult], awaited: Any
) -> Generator[Any, Any, SendResult]:
    """Continue `work`, which waits for something: every step in `context` and in the caller's task."""
    while True:
        try:
            step, given = work.send, (yield awaited)
        except BaseException as error:
            step, given = work.throw, error
        try:
            awaited = context.run(step, given)
        except StopIteration as returned:
            result: SendResult = returned.value
            return result


async def _awaited(call: Call) -> SendResult:
    try:
        await call.handler.function(call.event, call.context)
    except KeyboardInterrupt:
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        # If the handler awaits something that was cancelled, that is an error like any other.
        return UnavailableError(CLOSED) if task is not None and task.cancelling() else _error_of(call.handler, error)
    except BaseException as error:
        return _error_of(call.handler, error)
    return None


def _called(call: Call, timeout: float | None) -> SendResult:
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
        return RejectedError(f"handler {handler.name} returned an awaitable; define it with `async def`")
    if timeout is not None and time.monotonic() - began > timeout:
        return _timed_out(handler.name, timeout)
    return None


def _error_of(handler: Handler, error: BaseException) -> SendError:
    """A SendError of the handler passes; any other exception, also SystemExit, rejects the message."""
    if isinstance(error, (RejectedError, UnavailableError)):
        return error
    try:
        text = primary_text(error).strip()
    except Exception:  # its __str__ raised
        text = ""
    first = text.splitlines()[0][:MAX_ERROR] if text else ""
    raised = f"{type(error).__name__}: {first}" if first else type(error).__name__
    rejected = RejectedError(f"handler {handler.name} raised {raised}")
    rejected.__cause__ = error
    return rejected


def _timed_out(name: str, timeout: float | None) -> RejectedError:
    return RejectedError(f"handler {name} took longer than {timeout:g} s; make it faster, or raise Handlers.timeout")
