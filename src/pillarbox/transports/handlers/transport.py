"""Handlers as a transport: calls them, limits their time, and turns what they raise into results.

One timer per batch limits the time of async handlers. A sync handler runs in a thread and cannot be stopped: its
message gets its result when the handler returns, so that it blocks its key until then. So does an async handler that
ignores its cancellation. Each result is available as soon as its handler has returned. Each handler has its own share
of threads and tasks, so that a hanging handler leaves the others theirs.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, RejectedError, UnavailableError
from pillarbox.core.text import Upcast
from pillarbox.core.transport import Address, Outgoing, Pace, Result
from pillarbox.threads import Threads
from pillarbox.transports.handlers.calls import (
    CLOSE_TIMEOUT,
    CLOSED,
    Call,
    Calls,
    Handler,
    HandlerContext,
    ReceivedEvent,
)

CALLS = 256
"""Async handlers that run at once."""
BATCH = 128
_PATTERN = re.compile(r"[*?[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerAddress(Address):
    """A handler, by its name."""

    name: str


class HandlerTransport:
    """Calls the registered handlers. See `pillarbox.adapters.Transport`; `Handlers` adds the decorators."""

    address_type = HandlerAddress

    def __init__(self, *, timeout: Duration = "30s", workers: int = 32, upcast: Upcast | None = None) -> None:
        """
        timeout: how long one call may take; 0: no limit.
        workers: threads for sync handlers; each sync handler can always use at least one of them.
        upcast: converts payloads of older versions, for example `EventTypes.upcast`.
        """
        if workers < 1:
            raise ConfigurationError(f"handlers.workers is {workers}; use at least 1 thread for sync handlers")
        self._timeout = seconds(timeout, field="handlers.timeout") or None
        self._workers = workers
        self._upcast = upcast
        self._handlers: dict[str, Handler] = {}
        self._async_names: dict[bool, set[str]] = {True: set(), False: set()}
        """The names of the async handlers, and of the sync ones."""
        self._by_type: defaultdict[str, dict[str, int]] = defaultdict(dict)
        """The names of the handlers of a type without patterns, each with its number."""
        self._by_pattern: list[tuple[int, Handler]] = []
        self._threads = Threads(workers)
        self._running: set[Call] = set()
        """Running calls, also those whose result is no longer needed."""
        self._batches: set[Calls] = set()
        self.pace = self._make_pace()
        self._closing: list[Callable[[], Awaitable[None]]] = []
        self._closed = False

    def register(self, handler: Handler) -> None:
        """Add a handler. Raises ConfigurationError if the name is in use."""
        if handler.name in self._handlers:
            raise ConfigurationError(
                f"handler {handler.name} is already registered; give each handler its own name, "
                "and pass all event types of a handler at once"
            )
        number = len(self._handlers)
        self._handlers[handler.name] = handler
        self._async_names[handler.is_async].add(handler.name)
        if any(_PATTERN.search(event_type) for event_type in handler.event_types):
            self._by_pattern.append((number, handler))
        else:
            for event_type in handler.event_types:
                self._by_type[event_type][handler.name] = number
        self._threads.most = total_calls(self._workers, len(self._async_names[False]))
        self.pace = self._make_pace()

    def to(self, name: str) -> HandlerAddress:
        """The address of the handler with this name, which may be added later."""
        return HandlerAddress(name=name)

    @property
    def names(self) -> list[str]:
        """The names of all handlers, in the order in which they were added."""
        return list(self._handlers)

    def names_for(self, event_type: str) -> list[str]:
        """The names of all handlers of a type, in the order in which they were added; matches only patterns one by
        one, however many handlers there are."""
        numbers = {
            handler.name: number
            for number, handler in self._by_pattern
            if any(fnmatchcase(event_type, pattern) for pattern in handler.event_types)
        }
        numbers |= self._by_type.get(event_type, {})
        return sorted(numbers, key=numbers.__getitem__)

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        """Every handler of the type; each is a destination."""
        return {name: self.to(name) for name in self.names_for(event_type)}

    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        async with aclosing(self.stream(batch)) as stream:
            results = {position: result async for finished in stream for position, result in finished}
        return [results[position] for position in range(len(batch))]

    async def stream(self, batch: Sequence[Outgoing]) -> AsyncGenerator[list[tuple[int, Result]], None]:
        """See `pillarbox.core.transport.StreamingTransport`."""
        await self.ping()
        calls = Calls(self._running, self._timeout)
        timer = None
        if self._timeout is not None:
            timer = asyncio.get_running_loop().call_later(self._timeout, calls.expire)
        self._batches.add(calls)
        try:
            self._begin(calls, batch)
            left = len(batch)
            while left:
                results = await calls.next()
                left -= len(results)
                yield results
        except (asyncio.CancelledError, GeneratorExit):
            await calls.abandon()
            raise
        finally:
            self._batches.discard(calls)
            if timer is not None:
                timer.cancel()

    async def ping(self) -> None:
        if self._closed:
            raise UnavailableError(CLOSED)

    async def aclose(self) -> None:
        """Cancel async handlers, and call `aclose` of handler objects; waits a few seconds for each.

        Sync handlers cannot be stopped and run on.
        """
        self._closed = True
        self._threads.close()
        await asyncio.gather(*[calls.abandon() for calls in self._batches])
        while self._closing:
            closing = asyncio.ensure_future(self._closing.pop()())
            await asyncio.wait([closing], timeout=CLOSE_TIMEOUT)
            if closing.done():
                closing.result()
            else:
                closing.cancel()

    def _make_pace(self) -> Pace:
        tasks = total_calls(CALLS, len(self._async_names[True]))
        overdue = None if self._timeout is None else self._timeout + min(1.0, self._timeout)
        return Pace(
            batch_size=BATCH,
            concurrency=math.ceil((tasks + self._threads.most) / BATCH),
            bounded=True,
            apart=True,
            window=self._window,
            overdue=overdue,
        )

    def _window(self, address: Address, sending: Mapping[Address, int]) -> int:
        """How many more calls the handler at this address may get."""
        handler = self._handlers.get(address.name) if isinstance(address, HandlerAddress) else None
        if handler is None:
            return BATCH  # there is no handler to call
        running = Counter([call.handler.name for call in self._running.copy()])  # threads change it meanwhile
        begun: Counter[str] = Counter()
        for other, count in sending.items():
            if isinstance(other, HandlerAddress):
                begun[other.name] += count
        # Calls whose result is no longer needed are not in flight, but still occupy their thread.
        running |= begun
        most = CALLS if handler.is_async else self._workers
        return free_calls(handler.name, running, self._async_names[handler.is_async], most=most)

    def _begin(self, calls: Calls, batch: Sequence[Outgoing]) -> None:
        on_loop: list[Call] = []
        on_threads: list[Call] = []
        for position, one in enumerate(batch):
            name = one.address.name if isinstance(one.address, HandlerAddress) else repr(one.address)
            handler = self._handlers.get(name)
            if handler is None:
                error = RejectedError(f"handler {name!r} does not exist here; deploy it, or correct the route")
                calls.reject(position, error)
                continue
            event = ReceivedEvent(one, self._upcast)
            context = HandlerContext(one.attempt, one.headers, one.epoch, one.message.destination or name)
            call = calls.open[position] = Call(calls, position, handler, event, context)
            (on_loop if handler.is_async else on_threads).append(call)
        if on_threads:
            self._threads.begin_all(on_threads)
        if on_loop:
            calls.begin(on_loop)


def total_calls(most: int, handlers: int) -> int:
    """How many calls may run at once: `most`, or one per handler if there are more handlers."""
    return max(most, handlers)


def free_calls(name: str, running: Mapping[str, int], handlers: Collection[str], *, most: int) -> int:
    """How many more calls of the handler `name` may begin, given the running calls of each of `handlers`.

    A handler that hangs uses up its own share and the common rest, never the share of another: each of the others can
    run at least one call at a time. The cost depends on the number of running handlers, not of all.
    """
    count = max(1, len(handlers))
    own = max(1, most // (2 * count))
    common = total_calls(most, count) - own * count
    borrowed = sum(max(0, calls - own) for other, calls in running.items() if other != name and other in handlers)
    return own + max(0, common - borrowed) - running.get(name, 0)
