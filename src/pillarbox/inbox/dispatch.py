"""Calls the handler of an event in a transaction: begin, admit, call, commit.

Async handlers run in the event loop. Sync handlers run in a thread from the beginning of their transaction to its end,
because some drivers require one thread. Consumer statistics are written where the handlers run.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from pillarbox import dialects
from pillarbox.connections.driver_errors import driver_message
from pillarbox.core.errors import (
    ConfigurationError,
    PermanentError,
    RecordError,
    RejectedError,
    primary_text,
)
from pillarbox.core.event import MAX_TEXT_BYTES, check_text
from pillarbox.core.statistics import ConsumerStatistics
from pillarbox.inbox.consumed_event import ConsumedEvent
from pillarbox.inbox.inbox import Inbox
from pillarbox.inbox.transactions import Block, Open, is_awaited, opened
from pillarbox.threads import Threads

ConsumerFunction = Callable[[Any, ConsumedEvent], Any]
"""Called with the open transaction and the event; sync or async; its result is ignored."""
Around = Callable[[ConsumedEvent], AbstractContextManager[object]]
"""Returns a context manager that is entered around the transaction of an event, in the thread and in the context of its
handler; it must not raise by itself."""


class NoTransactionError(Exception):
    """No transaction could be opened, or the inbox could not be read: the handler was not called. See its cause.

    The consumer catches it: no caller of Pillarbox does.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A handler and the event types that it handles."""

    event_types: tuple[str, ...]
    handler: ConsumerFunction

    def matches(self, event_type: str) -> bool:
        """Whether one of its types or patterns, such as `order.*`, matches; case-sensitive."""
        return any(fnmatchcase(event_type, pattern) for pattern in self.event_types)


class Dispatcher:
    """The handlers of one consumer: the first that matches the type handles an event."""

    def __init__(self, consumer: str, *, inbox: Inbox, open_block: Open, workers: int) -> None:
        self._consumer = consumer
        self._inbox = inbox
        self._open = open_block
        self._threads = Threads(workers)
        self._subscriptions: list[Subscription] = []
        self.around: Around | None = None
        self._blocking = asyncio.Lock()

    @property
    def event_types(self) -> tuple[str, ...]:
        return tuple(pattern for subscription in self._subscriptions for pattern in subscription.event_types)

    def add(self, handler: ConsumerFunction, event_types: tuple[str, ...]) -> None:
        """Add a handler. Raises ConfigurationError if a type has one already, and for another object."""
        where = f"consumer {self._consumer}"
        if not event_types:
            raise ConfigurationError(f'{where}: name at least one event type; "*" stands for all')
        for pattern in event_types:
            try:
                check_text(f"{where}: an event type", pattern, MAX_TEXT_BYTES)
            except RecordError as error:
                raise ConfigurationError(str(error)) from None
            if pattern in self.event_types:
                raise ConfigurationError(
                    f"{where}: {pattern} has a handler already; for a second one create a second consumer, "
                    "with its own name and its own queue"
                )
        _check_handler(where, handler)
        self._subscriptions.append(Subscription(event_types=event_types, handler=handler))

    async def handle(self, event: ConsumedEvent) -> bool:
        """Call the handler of an event and commit. True: the event is processed now; False: it is a duplicate.

        Raises NoTransactionError, and whatever the handler or its transaction raises.
        """
        handler = next((one.handler for one in self._subscriptions if one.matches(event.event_type)), None)
        if handler is None:
            raise RejectedError(
                f"consumer {self._consumer} has no handler for event type {event.event_type}; deploy a release with "
                "one, or unbind the type from the queue"
            )
        if not _is_async(handler):
            return await self._threads.begin(partial(self._call, handler, event))
        return await self._call_async(handler, event)

    async def add_statistics(self, statistics: ConsumerStatistics) -> None:
        """Write consumer statistics in their own transaction. Raises what the transaction or the write raises."""
        if any(not _is_async(one.handler) for one in self._subscriptions):
            await self._threads.begin(partial(self._write_statistics, statistics))
            return
        block = opened(self._open)
        if is_awaited(block):
            async with block as connection:
                await self._inbox.aadd_statistics(connection, statistics)
        else:
            async with self._one_at_a_time(block) as connection:
                self._inbox.add_statistics(connection, statistics)

    def close(self) -> None:
        """End the threads once they are idle."""
        self._threads.close()

    async def _call_async(self, handler: ConsumerFunction, event: ConsumedEvent) -> bool:
        with self._around(event):
            return await self._call_async_in_transaction(handler, event)
        raise self._suppressed_error()

    async def _call_async_in_transaction(self, handler: ConsumerFunction, event: ConsumedEvent) -> bool:
        block = self._open_transaction()
        entered = block if is_awaited(block) else self._one_at_a_time(block)
        called = False
        try:
            async with entered as connection:
                if not await self._admit(connection, event, awaited=is_awaited(block)):
                    return False
                called = True
                await handler(connection, event)
                return True
        except Exception as error:
            if called:
                raise
            raise self._not_called(error) from error
        raise self._suppressed_error()

    async def _admit(self, connection: Any, event: ConsumedEvent, *, awaited: bool) -> bool:
        if awaited:
            return await self._inbox.aadmit(connection, self._consumer, event)
        return self._inbox.admit(connection, self._consumer, event)

    @asynccontextmanager
    async def _one_at_a_time(self, block: Any) -> AsyncIterator[Any]:
        """Enter a sync transaction in the event loop: a second one would block the loop that the first needs."""
        async with self._blocking:
            with block as connection:
                yield connection

    def _call(self, handler: ConsumerFunction, event: ConsumedEvent) -> bool:
        with self._around(event):
            return self._call_in_transaction(handler, event)
        raise self._suppressed_error()

    def _call_in_transaction(self, handler: ConsumerFunction, event: ConsumedEvent) -> bool:
        block: Any = self._open_transaction()
        called = False
        try:
            with block as connection:
                if not self._inbox.admit(connection, self._consumer, event):
                    return False
                called = True
                if inspect.isawaitable(handler(connection, event)):
                    raise RejectedError(
                        f"consumer {self._consumer}: the sync handler for event type {event.event_type} returned an "
                        "awaitable, which is not awaited; define it with `async def`"
                    )
                return True
        except Exception as error:
            if called:
                raise
            raise self._not_called(error) from error
        raise self._suppressed_error()

    def _write_statistics(self, statistics: ConsumerStatistics) -> bool:
        block: Any = opened(self._open)
        with block as connection:
            self._inbox.add_statistics(connection, statistics)
        return True

    def _around(self, event: ConsumedEvent) -> AbstractContextManager[object]:
        return nullcontext() if self.around is None else self.around(event)

    def _open_transaction(self) -> Block:
        try:
            return opened(self._open)
        except Exception as error:
            raise self._not_called(error) from error

    def _not_called(self, error: Exception) -> PermanentError | NoTransactionError:
        if dialects.refuses_value(error):
            return PermanentError(
                f"the database rejects the inbox record of consumer {self._consumer}: "
                f"{driver_message(error)}; correct the producer"
            )
        return NoTransactionError(
            f"consumer {self._consumer} cannot open a transaction: {type(error).__name__}: {primary_text(error)}"
        )

    def _suppressed_error(self) -> RejectedError:
        return RejectedError(
            f"consumer {self._consumer}: a context manager around the handler suppressed its exception, so its result "
            "is unknown; let the exception propagate"
        )


def ends_the_task(error: BaseException) -> bool:
    """Whether the exception ends the running task: an interrupt, or a cancellation of this task.

    A CancelledError of another task that a handler awaits is an error like any other.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt)


def _is_async(handler: Any) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004 - a callable object's own method is what may be async


def _check_handler(where: str, handler: Any) -> None:
    if not callable(handler):
        raise ConfigurationError(f"{where}: {handler!r} is not callable; pass a function")
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        raise ConfigurationError(
            f"{where}: {handler.__qualname__} is a generator, so calling it would do nothing; remove the yield"
        )
    try:
        inspect.signature(handler).bind(None, None)
    except TypeError:
        raise ConfigurationError(
            f"{where}: {getattr(handler, '__qualname__', handler)} cannot be called with (transaction, event); "
            "give it these two parameters"
        ) from None
    except ValueError:
        return  # some built-ins have no signature
