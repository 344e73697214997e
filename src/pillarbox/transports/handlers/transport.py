"""Handlers: calls them, bounds their time, and turns what they raise into a verdict.

An async handler runs in a task of its own, under one timer for its lot. A standing set of worker tasks with a timer per
event took as much, and let one event see the context variables of another. A sync handler runs in a thread and cannot
be stopped: its message is answered when it returns, so that it holds its key for as long as it is at work. So does an
async one that ignores its cancellation. Each answer is given as soon as it is there, without a task that waits for it.
Each handler has its share of threads and tasks, so that one that hangs leaves the others theirs.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from pillarbox.core.driver_errors import primary_text
from pillarbox.core.duration import Duration, seconds
from pillarbox.core.errors import ConfigurationError, Rejected, SendError, Unavailable
from pillarbox.core.payload import Upcast
from pillarbox.core.threads import Threads
from pillarbox.core.transport import Address, Outgoing, Pace, Result
from pillarbox.transports.handlers.received import HandlerContext, ReceivedEvent
from pillarbox.transports.handlers.registry import (
    Handler,
    HandlerFunction,
    HandlerObject,
    Registry,
    default_name,
)
from pillarbox.transports.handlers.shares import places, room

LONGEST_ERROR = 500
"""Characters of an exception's first line that are kept."""

CALLS = 256
"""Async handlers that run at once."""
LOT = 32
GOODBYE = 5.0
"""Seconds for which the end of what was cancelled or closed is waited for."""

_CLOSED = "handlers: closed while the relay stops; the event is handled after the next start"

F = TypeVar("F", bound=HandlerFunction)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerAddress(Address):
    """A handler by its name."""

    name: str


class Handlers:
    """See `pillarbox.core.transport.Transport`. `timeout` bounds one call, 0 = no bound; `workers` is the number of
    threads for sync handlers, of which each handler keeps at least one for itself; `upcast` brings payloads of older
    versions up to date: `EventTypes.upcast` is one."""

    address_type = HandlerAddress

    def __init__(self, *, timeout: Duration = "30s", workers: int = 32, upcast: Upcast | None = None) -> None:
        if workers < 1:
            raise ConfigurationError(f"handlers.workers is {workers}: at least one thread is needed for sync handlers")
        self._timeout = seconds(timeout, field="handlers.timeout") or None
        self._workers = workers
        self._upcast = upcast
        self._registry = Registry()
        self._threads = Threads[Result](workers)
        self._running: defaultdict[str, set[object]] = defaultdict(set)
        self.pace = self._make_pace()
        self._calls: set[asyncio.Future[Result]] = set()
        self._closing: list[Callable[[], Awaitable[None]]] = []
        self._closed = False

    def on(self, *event_types: str, name: str | None = None) -> Callable[[F], F]:
        """Decorate a function `(event, context)`, sync or async, as the handler of these types; patterns such as
        `order.*` are welcome. Default name: module.qualname. Raises ConfigurationError for a name that is taken."""

        def decorate(function: F) -> F:
            self._register(Handler.of(function, event_types, name or default_name(function)))
            return function

        return decorate

    def add(self, handler: HandlerObject) -> None:
        """Add an object with `event_type` (one or several), `handle(event, context)` and, if it likes, `name` and
        `aclose()`, which is awaited when the handlers are closed.

        Raises ConfigurationError for a name that is taken.
        """
        types = handler.event_type
        name = getattr(handler, "name", None) or default_name(type(handler))
        self._register(Handler.of(handler.handle, [types] if isinstance(types, str) else types, name))
        if close := getattr(handler, "aclose", None):
            self._closing.append(close)

    def to(self, name: str) -> HandlerAddress:
        """The address of the handler of that name, which may be added later."""
        return HandlerAddress(name=name)

    @property
    def names(self) -> list[str]:
        """The names of all handlers, in the order in which they were added."""
        return self._registry.names

    def names_for(self, event_type: str) -> list[str]:
        """The names of all handlers of a type, in the order in which they were added."""
        return self._registry.names_for(event_type)

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        """Every handler of the type, each a destination of its own."""
        return {name: self.to(name) for name in self.names_for(event_type)}

    async def send(self, lot: Sequence[Outgoing]) -> list[Result]:
        async with aclosing(self.answers(lot)) as answers:
            results = {position: result async for position, result in answers}
        return [results[position] for position in range(len(lot))]

    async def answers(self, lot: Sequence[Outgoing]) -> AsyncGenerator[tuple[int, Result], None]:
        """See `pillarbox.core.transport.AnswersApart`."""
        await self.ping()
        calls = {self._begin(one): position for position, one in enumerate(lot)}
        self._calls.update(calls)
        late: set[asyncio.Future[Result]] = set()
        returned = _Returned(calls)
        timer = None if self._timeout is None else returned.loop.call_later(self._timeout, _cancel, calls, late)
        try:
            while calls:
                call = await returned.next()
                self._calls.discard(call)
                position = calls.pop(call)
                yield position, self._answer(lot[position], call, late)
        except (asyncio.CancelledError, GeneratorExit):
            await _abandon(calls)
            raise
        finally:
            self._calls.difference_update(calls)
            if timer is not None:
                timer.cancel()

    async def ping(self) -> None:
        if self._closed:
            raise Unavailable(_CLOSED)

    async def aclose(self) -> None:
        """Cancel async handlers and wait for their end, leave sync ones to themselves, and close who can be closed;
        nothing is waited for longer than a few seconds."""
        self._closed = True
        self._threads.close()
        await _abandon(self._calls)
        while self._closing:
            closing = asyncio.ensure_future(self._closing.pop()())
            await asyncio.wait([closing], timeout=GOODBYE)
            if closing.done():
                closing.result()
            else:
                closing.cancel()

    def _register(self, handler: Handler) -> None:
        self._registry.add(handler)
        self._threads.most = places(self._workers, len(self._registry.like(is_async=False)))
        self.pace = self._make_pace()

    def _make_pace(self) -> Pace:
        tasks = places(CALLS, len(self._registry.like(is_async=True)))
        overdue = None if self._timeout is None else self._timeout + min(1.0, self._timeout)
        return Pace(
            lot=LOT,
            lots=math.ceil((tasks + self._threads.most) / LOT),
            bounded=True,
            apart=True,
            room=self._room,
            overdue=overdue,
        )

    def _room(self, address: Address, sending: Mapping[Address, int]) -> int:
        """How many more calls the handler at this address may get."""
        handler = self._registry.find(address.name) if isinstance(address, HandlerAddress) else None
        if handler is None:
            return LOT  # it is not called, only answered
        running = Counter({name: len(calls) for name, calls in self._running.items()})
        begun: Counter[str] = Counter()
        for other, count in sending.items():
            if isinstance(other, HandlerAddress):
                begun[other.name] += count
        # Calls that nobody waits for any more are not being sent, and still occupy their thread.
        running |= begun
        most = CALLS if handler.is_async else self._workers
        return room(handler.name, running, self._registry.like(is_async=handler.is_async), most=most)

    def _begin(self, one: Outgoing) -> asyncio.Future[Result]:
        loop = asyncio.get_running_loop()
        name = _name(one)
        handler = self._registry.find(name)
        if handler is None:
            unknown: asyncio.Future[Result] = loop.create_future()
            unknown.set_result(Rejected(f"no handler is called {name!r} here; deploy it, or correct the route"))
            return unknown
        event = ReceivedEvent(one, self._upcast)
        context = HandlerContext(one.attempt, one.headers, one.epoch, one.message.destination or name)
        if handler.is_async:
            return loop.create_task(self._awaited(handler, event, context))
        return self._threads.begin(partial(self._called, handler, event, context))

    async def _awaited(self, handler: Handler, event: ReceivedEvent, context: HandlerContext) -> Result:
        with self._counted(handler):
            return await _awaited(handler, event, context)

    def _called(self, handler: Handler, event: ReceivedEvent, context: HandlerContext) -> Result:
        with self._counted(handler):
            return _called(handler, event, context, self._timeout)

    @contextmanager
    def _counted(self, handler: Handler) -> Iterator[None]:
        """Count a call while it runs; on threads, too: adding to a set and taking away from it are atomic."""
        call = object()
        self._running[handler.name].add(call)
        try:
            yield
        finally:
            self._running[handler.name].discard(call)

    def _answer(self, one: Outgoing, call: asyncio.Future[Result], late: set[asyncio.Future[Result]]) -> Result:
        if call in late:
            return _took_too_long(_name(one), self._timeout)
        return Unavailable(_CLOSED) if call.cancelled() else call.result()


class _Returned:
    """Calls in the order in which they return."""

    def __init__(self, calls: Iterable[asyncio.Future[Result]]) -> None:
        self.loop = asyncio.get_running_loop()
        self._returned: deque[asyncio.Future[Result]] = deque()
        self._waiter: asyncio.Future[None] | None = None
        for call in calls:
            call.add_done_callback(self._add)

    async def next(self) -> asyncio.Future[Result]:
        if not self._returned:
            self._waiter = self.loop.create_future()
            await self._waiter
        return self._returned.popleft()

    def _add(self, call: asyncio.Future[Result]) -> None:
        self._returned.append(call)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _cancel(calls: Iterable[asyncio.Future[Result]], late: set[asyncio.Future[Result]]) -> None:
    """The time of these calls is up; what runs in a thread cannot be stopped."""
    for call in calls:
        if isinstance(call, asyncio.Task) and not call.done():
            late.add(call)
            call.cancel()


def _name(one: Outgoing) -> str:
    return one.address.name if isinstance(one.address, HandlerAddress) else repr(one.address)


async def _abandon(calls: Iterable[asyncio.Future[Result]]) -> None:
    """End what can be ended, and wait for that a while; what blocks a thread is answered without waiting for it."""
    calls = list(calls)
    for call in calls:
        if isinstance(call, asyncio.Task):
            call.cancel()
        elif not call.done():
            call.set_result(Unavailable(_CLOSED))
    if calls:
        await asyncio.wait(calls, timeout=GOODBYE)


async def _awaited(handler: Handler, event: ReceivedEvent, context: HandlerContext) -> Result:
    try:
        await handler.function(event, context)
    except KeyboardInterrupt:
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        # Its own doing, for example awaiting something that was cancelled, is an error like any other.
        return Unavailable(_CLOSED) if task is not None and task.cancelling() else _verdict(handler, error)
    except BaseException as error:
        return _verdict(handler, error)
    return None


def _called(handler: Handler, event: ReceivedEvent, context: HandlerContext, timeout: float | None) -> Result:
    began = time.monotonic()
    try:
        returned = handler.function(event, context)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return _verdict(handler, error)
    if inspect.isawaitable(returned):
        if inspect.iscoroutine(returned):
            returned.close()
        return Rejected(f"handler {handler.name} returned something to await, which nobody does; make it `async def`")
    if timeout is not None and time.monotonic() - began > timeout:
        return _took_too_long(handler.name, timeout)
    return None


def _verdict(handler: Handler, error: BaseException) -> SendError:
    """What it says of itself, if it does; else the message is at fault. SystemExit ends a handler, not the relay."""
    if isinstance(error, (Rejected, Unavailable)):
        return error
    verdict = Rejected(f"handler {handler.name} raised {_told(error)}")
    verdict.__cause__ = error
    return verdict


def _told(error: BaseException) -> str:
    try:
        text = primary_text(error).strip()
    except Exception:  # an exception that cannot even say what it is
        text = ""
    first = text.splitlines()[0][:LONGEST_ERROR] if text else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _took_too_long(name: str, timeout: float | None) -> Rejected:
    return Rejected(f"handler {name} took longer than {timeout:g} s; raise handlers.timeout or make it faster")
