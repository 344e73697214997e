"""The transport that calls handlers, limits their time and turns their exceptions into results.

One timer per batch limits the time of async handlers. A sync handler runs in a thread and cannot be stopped: its result
is known when it returns, and its key waits as long. The same holds for an async handler that ignores its cancellation.
Results are returned as soon as they are known. Each handler has a share of the threads and tasks, so that one that
hangs does not stop the others.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, RejectedError, UnavailableError
from pillarbox.core.text import Upcast
from pillarbox.core.transport import Address, Outgoing, Pace, Result
from pillarbox.threads import Threads
from pillarbox.transports.handlers.calls import CLOSE_TIMEOUT, CLOSED, Call, Calls
from pillarbox.transports.handlers.received import HandlerContext, ReceivedEvent
from pillarbox.transports.handlers.registry import (
    Handler,
    HandlerFunction,
    HandlerObject,
    Registry,
    default_name,
)
from pillarbox.transports.handlers.shares import free_calls, total_calls

CALLS = 256
"""Async handlers that run at once."""
BATCH = 128

F = TypeVar("F", bound=HandlerFunction)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerAddress(Address):
    """A handler, by its name."""

    name: str


class HandlerTransport:
    """Calls the handlers of a registry. See `pillarbox.adapters.Transport`; to decorate functions use `Handlers`."""

    address_type = HandlerAddress

    def __init__(
        self, registry: Registry, *, timeout: Duration = "30s", workers: int = 32, upcast: Upcast | None = None
    ) -> None:
        """
        registry: the handlers to call.
        timeout: how long one call may take; 0: no limit.
        workers: threads for sync handlers; each sync handler can always use at least one of them.
        upcast: converts payloads of older versions, for example `EventTypes.upcast`.
        """
        if workers < 1:
            raise ConfigurationError(f"handlers.workers is {workers}; use at least 1 thread for sync handlers")
        self._timeout = seconds(timeout, field="handlers.timeout") or None
        self._workers = workers
        self._upcast = upcast
        self._registry = registry
        self._threads = Threads(workers)
        self._running: set[Call] = set()
        """Running calls, also those whose result is no longer needed."""
        self._batches: set[Calls] = set()
        self.pace = self._make_pace()
        self._closing: list[Callable[[], Awaitable[None]]] = []
        self._closed = False

    def to(self, name: str) -> HandlerAddress:
        """The address of the handler with this name, which may be added later."""
        return HandlerAddress(name=name)

    @property
    def names(self) -> list[str]:
        """The names of all handlers, in the order in which they were added."""
        return self._registry.names

    def names_for(self, event_type: str) -> list[str]:
        """The names of all handlers of a type, in the order in which they were added."""
        return self._registry.names_for(event_type)

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

    def _register(self, handler: Handler) -> None:
        self._registry.add(handler)
        self._threads.most = total_calls(self._workers, len(self._registry.like(is_async=False)))
        self.pace = self._make_pace()

    def _make_pace(self) -> Pace:
        tasks = total_calls(CALLS, len(self._registry.like(is_async=True)))
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
        """How many more calls the handler at this address may begin."""
        handler = self._registry.find(address.name) if isinstance(address, HandlerAddress) else None
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
        return free_calls(handler.name, running, self._registry.like(is_async=handler.is_async), most=most)

    def _begin(self, calls: Calls, batch: Sequence[Outgoing]) -> None:
        on_loop: list[Call] = []
        on_threads: list[Call] = []
        for position, one in enumerate(batch):
            name = _name(one)
            handler = self._registry.find(name)
            if handler is None:
                error = RejectedError(f"handler {name!r} does not exist here; deploy it, or correct the route")
                calls.reject(position, error)
                continue
            event = ReceivedEvent(one, self._upcast)
            context = HandlerContext(one.attempt, one.headers, one.epoch, one.message.destination or name)
            call = calls.add(position, handler, event, context)
            (on_loop if handler.is_async else on_threads).append(call)
        if on_threads:
            self._threads.begin_all(on_threads)
        if on_loop:
            calls.begin(on_loop)


class Handlers(HandlerTransport):
    """A registry of handlers to decorate functions with, and the transport that calls them.

    timeout, workers, upcast: as in `HandlerTransport`.
    """

    def __init__(self, *, timeout: Duration = "30s", workers: int = 32, upcast: Upcast | None = None) -> None:
        super().__init__(Registry(), timeout=timeout, workers=workers, upcast=upcast)

    def on(self, *event_types: str, name: str | None = None) -> Callable[[F], F]:
        """Decorate a function `(event, context)`, sync or async, as the handler of these event types.

        An event type may be a pattern such as `order.*`. `name` defaults to module.qualname.
        Raises ConfigurationError if the name is in use.
        """

        def decorate(function: F) -> F:
            self._register(Handler.of(function, event_types, name or default_name(function)))
            return function

        return decorate

    def add(self, handler: HandlerObject) -> None:
        """Add an object with `event_type` (one or several) and `handle(event, context)`.

        The object may have a `name`, and an `aclose()`, which `Handlers.aclose` awaits.

        Raises ConfigurationError if the name is in use.
        """
        types = handler.event_type
        name = getattr(handler, "name", None) or default_name(type(handler))
        self._register(Handler.of(handler.handle, [types] if isinstance(types, str) else types, name))
        if close := getattr(handler, "aclose", None):
            self._closing.append(close)


def _name(one: Outgoing) -> str:
    return one.address.name if isinstance(one.address, HandlerAddress) else repr(one.address)
