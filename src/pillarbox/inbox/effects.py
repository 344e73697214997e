"""Which function an event is for, and its effect: begin, admit, call, commit.

Async functions run in the event loop. Plain ones run in a thread, from the beginning of their transaction to its end,
because some drivers insist on one thread. The consumer statistics have a transaction where the functions have theirs.
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

from pillarbox.connections import driver_errors
from pillarbox.core.errors import (
    ConfigurationError,
    PermanentError,
    PillarboxError,
    RecordError,
    RejectedError,
    primary_text,
)
from pillarbox.core.event import LONGEST_TEXT, check_text
from pillarbox.core.row import ConsumerStatistics
from pillarbox.inbox.consumed import ConsumedEvent
from pillarbox.inbox.inbox import Inbox
from pillarbox.inbox.transactions import Block, Open, is_awaited, opened
from pillarbox.threads import Threads

Function = Callable[[Any, ConsumedEvent], Any]
"""Called with the open transaction and the event; sync or async; what it returns does not matter."""
Around = Callable[[ConsumedEvent], AbstractContextManager[object]]
"""Gives a block that is entered around everything done with an event, on the thread and in the context in which its
function is called; it must not raise by itself."""


class NotBegun(PillarboxError):
    """The function was not called: there was no transaction, or the inbox could not be asked. Its cause says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A function and the types it is for."""

    event_types: tuple[str, ...]
    function: Function

    def takes(self, event_type: str) -> bool:
        """Whether the type, or a pattern such as `order.*`, fits; case matters."""
        return any(fnmatchcase(event_type, pattern) for pattern in self.event_types)


class Effects:
    """The functions of one consumer: an event is for the first that takes its type."""

    def __init__(self, consumer: str, *, inbox: Inbox, open_block: Open, workers: int) -> None:
        self._consumer = consumer
        self._inbox = inbox
        self._open = open_block
        self._threads = Threads(workers)
        self._effects: list[Effect] = []
        self.around: Around | None = None
        self._blocking = asyncio.Lock()

    @property
    def event_types(self) -> tuple[str, ...]:
        return tuple(pattern for effect in self._effects for pattern in effect.event_types)

    def add(self, function: Function, event_types: tuple[str, ...]) -> None:
        """Raises ConfigurationError for a type that is taken and for what could never be called."""
        where = f"consumer {self._consumer}"
        if not event_types:
            raise ConfigurationError(f'{where}: name at least one event type; "*" stands for all')
        for pattern in event_types:
            try:
                check_text(f"{where}: an event type", pattern, LONGEST_TEXT)
            except RecordError as error:
                raise ConfigurationError(str(error)) from None
            if pattern in self.event_types:
                raise ConfigurationError(
                    f"{where}: {pattern} has a function already; a second effect is a second consumer, "
                    "with a name and a queue of its own"
                )
        _check_function(where, function)
        self._effects.append(Effect(event_types=event_types, function=function))

    async def carry_out(self, event: ConsumedEvent) -> bool:
        """True: it had its effect, committed; False: it had it before. Raises NotBegun, and whatever the function or
        the end of its transaction raises."""
        function = next((effect.function for effect in self._effects if effect.takes(event.event_type)), None)
        if function is None:
            raise RejectedError(
                f"consumer {self._consumer} has no function for {event.event_type}; deploy it, or unbind it"
            )
        if not _is_async(function):
            return await self._threads.begin(partial(self._called, function, event))
        return await self._awaited(function, event)

    async def add_statistics(self, statistics: ConsumerStatistics) -> None:
        """Write what the consumer met, in a transaction of its own. Raises whatever goes wrong."""
        if any(not _is_async(effect.function) for effect in self._effects):
            await self._threads.begin(partial(self._counted, statistics))
            return
        block = opened(self._open)
        if is_awaited(block):
            async with block as connection:
                await self._inbox.aadd_statistics(connection, statistics)
        else:
            async with self._one_at_a_time(block) as connection:
                self._inbox.add_statistics(connection, statistics)

    def close(self) -> None:
        """Let the threads end."""
        self._threads.close()

    async def _awaited(self, function: Function, event: ConsumedEvent) -> bool:
        with self._surrounded(event):
            return await self._begun_and_awaited(function, event)
        raise self._swallowed()

    async def _begun_and_awaited(self, function: Function, event: ConsumedEvent) -> bool:
        block = self._opened()
        entered = block if is_awaited(block) else self._one_at_a_time(block)
        begun = False
        try:
            async with entered as connection:
                if not await self._admitted(connection, event, awaited=is_awaited(block)):
                    return False
                begun = True
                await function(connection, event)
                return True
        except Exception as error:
            if begun:
                raise
            raise self._not_begun(error) from error
        raise self._swallowed()

    async def _admitted(self, connection: Any, event: ConsumedEvent, *, awaited: bool) -> bool:
        if awaited:
            return await self._inbox.aadmit(connection, self._consumer, event)
        return self._inbox.admit(connection, self._consumer, event)

    @asynccontextmanager
    async def _one_at_a_time(self, block: Any) -> AsyncIterator[Any]:
        """A block that is not awaited, in the event loop: a second one would block what the first needs to go on."""
        async with self._blocking:
            with block as connection:
                yield connection

    def _called(self, function: Function, event: ConsumedEvent) -> bool:
        with self._surrounded(event):
            return self._begun_and_called(function, event)
        raise self._swallowed()

    def _begun_and_called(self, function: Function, event: ConsumedEvent) -> bool:
        block: Any = self._opened()
        begun = False
        try:
            with block as connection:
                if not self._inbox.admit(connection, self._consumer, event):
                    return False
                begun = True
                if inspect.isawaitable(function(connection, event)):
                    raise RejectedError(
                        f"consumer {self._consumer}: the function for {event.event_type} returned something to await, "
                        "which nobody does; make it `async def`"
                    )
                return True
        except Exception as error:
            if begun:
                raise
            raise self._not_begun(error) from error
        raise self._swallowed()

    def _counted(self, statistics: ConsumerStatistics) -> bool:
        block: Any = opened(self._open)
        with block as connection:
            self._inbox.add_statistics(connection, statistics)
        return True

    def _surrounded(self, event: ConsumedEvent) -> AbstractContextManager[object]:
        return nullcontext() if self.around is None else self.around(event)

    def _opened(self) -> Block:
        try:
            return opened(self._open)
        except Exception as error:
            raise self._not_begun(error) from error

    def _not_begun(self, error: Exception) -> PillarboxError:
        if driver_errors.refuses_value(error):
            return PermanentError(f"the inbox of {self._consumer} refuses it: {driver_errors.driver_message(error)}")
        return NotBegun(
            f"consumer {self._consumer} has no transaction to work in: {type(error).__name__}: {primary_text(error)}"
        )

    def _swallowed(self) -> RejectedError:
        return RejectedError(
            f"consumer {self._consumer}: a block around the function swallowed what it raised; let it out"
        )


def ends_the_task(error: BaseException) -> bool:
    """Whether it is meant for the running task: an interrupt, or a cancellation that somebody asked for.

    What somebody's code brings about, for example by awaiting what was cancelled, is an error like any other.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt)


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - a callable object's own method is what may be async


def _check_function(where: str, function: Any) -> None:
    if not callable(function):
        raise ConfigurationError(f"{where}: {function!r} cannot be called; pass a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(f"{where}: {function.__qualname__} yields, so calling it would do nothing")
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        raise ConfigurationError(f"{where}: a function must take (transaction, event)") from None
    except ValueError:
        return  # some built-ins have no signature
