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
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import ClassVar

from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, RejectedError, UnavailableError
from pillarbox.core.payload import Upcast
from pillarbox.core.transport import Address, Outgoing, Pace, SendResult
from pillarbox.settings import Span, Whole, check_settings, setting
from pillarbox.threads import Threads
from pillarbox.transports.handlers.calls import (
    CLOSE_TIMEOUT,
    CLOSED,
    Call,
    Calls,
    Handler,
    HandlerContext,
    HandlerFunction,
    ReceivedEvent,
)
from pillarbox.transports.shares import free_calls, total_calls

HANDLER_TIMEOUT: Duration = "30s"
HANDLER_WORKERS = 32
CALLS = 256
"""Async handlers that run at once."""
BATCH = 128
_PATTERN = re.compile(r"[*?[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerAddress(Address):
    """A handler, by its name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerOverrides:
    """What replaces the arguments with which the application has made its `Handlers`."""

    python_name: ClassVar[str] = "Handlers"

    timeout: Duration | None = setting(
        None,
        Span(("forever",)),
        f"How long one call of a handler may take. Not set: `timeout` of `Handlers(…)`, by default {HANDLER_TIMEOUT}.",
    )
    workers: int | None = setting(
        None,
        Whole("threads"),
        "Threads for handlers that are not async; each of them can always use at least one. Not set: `workers` of "
        f"`Handlers(…)`, by default {HANDLER_WORKERS}.",
    )

    def __post_init__(self) -> None:
        check_settings(self)


class HandlerTransport:
    """Calls the registered handlers. See `pillarbox.adapters.Transport`; `Handlers` adds the decorators."""

    address_type = HandlerAddress

    def __init__(
        self, *, timeout: Duration = HANDLER_TIMEOUT, workers: int = HANDLER_WORKERS, upcast: Upcast | None = None
    ) -> None:
        """
        timeout: how long one call may take, or "forever".
        workers: threads for sync handlers; each sync handler can always use at least one of them.
        upcast: converts payloads of older versions, for example `EventTypes.upcast`.

        Raises ConfigurationError for a value that cannot work.
        """
        self._set_limits(timeout, workers)
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
        self._wrapper: Callable[[Handler], HandlerFunction] | None = None
        self._closed = False

    def configure(self, *, timeout: Duration | None = None, workers: int | None = None) -> None:
        """Replace `timeout` and `workers` before the first send; None: keep. Raises ConfigurationError."""
        if timeout is None:
            timeout = "forever" if self._timeout is None else self._timeout
        self._set_limits(timeout, self._workers if workers is None else workers)
        self._threads.most = total_calls(self._workers, len(self._async_names[False]))
        self.pace = self._make_pace()

    def _set_limits(self, timeout: Duration, workers: int) -> None:
        HandlerOverrides(timeout=timeout, workers=workers)  # checks
        self._timeout = None if timeout == "forever" else seconds(timeout)
        self._workers = workers

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

    def wrap(self, wrapper: Callable[[Handler], HandlerFunction]) -> None:
        """Call, instead of each handler, the function that `wrapper` returns for it; it is async if the handler is.

        For frameworks that prepare and clean up around each call. A later call replaces the wrapper.
        """
        self._wrapper = wrapper

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

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        async with aclosing(self.stream(batch)) as stream:
            results = {position: result async for finished in stream for position, result in finished}
        return [results[position] for position in range(len(batch))]

    async def stream(self, batch: Sequence[Outgoing]) -> AsyncGenerator[list[tuple[int, SendResult]], None]:
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

    def reopen(self) -> None:
        """Take calls again after `aclose`, for the next relay of this process: of an application that starts again, or
        of the next test. Handler objects that have an `aclose` stay closed."""
        if self._closed:
            self._threads = Threads(self._workers)
            self._threads.most = total_calls(self._workers, len(self._async_names[False]))
            self._closed = False

    def _make_pace(self) -> Pace:
        tasks = total_calls(CALLS, len(self._async_names[True]))
        overdue = None if self._timeout is None else self._timeout + min(1.0, self._timeout)
        return Pace(
            batch_size=BATCH,
            concurrency=math.ceil((tasks + self._threads.most) / BATCH),
            has_own_timeout=True,
            independent_results=True,
            capacity=self._capacity,
            overdue=overdue,
        )

    def _capacity(self, address: Address, sending: Mapping[Address, int]) -> int:
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
        limit = CALLS if handler.is_async else self._workers
        return free_calls(handler.name, running, self._async_names[handler.is_async], limit=limit)

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
            if self._wrapper is not None:
                handler = replace(handler, function=self._wrapper(handler))
            event = ReceivedEvent(one, self._upcast)
            context = HandlerContext(one.attempt, one.headers, one.epoch, one.message.destination or name)
            call = calls.open[position] = Call(calls, position, handler, event, context)
            (on_loop if handler.is_async else on_threads).append(call)
        if on_threads:
            try:
                self._threads.begin_all(on_threads)
            except UnavailableError as error:
                for call in on_threads:
                    calls.finish(call, error)
        if on_loop:
            calls.begin(on_loop)
