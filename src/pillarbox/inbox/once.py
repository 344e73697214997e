"""The decorator: a function that has its effect once per event, in the transaction it is given."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from pillarbox.core.errors import ConfigurationError
from pillarbox.inbox.records import Identified

H = TypeVar("H")
E = TypeVar("E", bound=str | Identified)
P = ParamSpec("P")
R = TypeVar("R")


class Admit(Protocol):
    def __call__(self, connection: Any, consumer: str, event: str | Identified) -> bool: ...


class AsyncAdmit(Protocol):
    def __call__(self, connection: Any, consumer: str, event: str | Identified) -> Awaitable[bool]: ...


class Once:
    """Made by `Inbox.once`. The function's first two arguments are the connection and the event, or its id."""

    def __init__(self, consumer: str, *, admit: Admit, aadmit: AsyncAdmit) -> None:
        self._consumer = consumer
        self._admit = admit
        self._aadmit = aadmit

    @overload
    def __call__(
        self, effect: Callable[Concatenate[H, E, P], Coroutine[Any, Any, R]]
    ) -> Callable[Concatenate[H, E, P], Coroutine[Any, Any, R | None]]: ...
    @overload
    def __call__(self, effect: Callable[Concatenate[H, E, P], R]) -> Callable[Concatenate[H, E, P], R | None]: ...
    def __call__(self, effect: Callable[..., Any]) -> Callable[..., Any]:
        """Raises ConfigurationError for a generator: calling it would do nothing, and be remembered as done."""
        if inspect.isgeneratorfunction(effect) or inspect.isasyncgenfunction(effect):
            raise ConfigurationError(
                f"consumer {self._consumer}: {effect.__qualname__} yields, so calling it would do nothing; "
                "remove the yield"
            )
        return self._awaited(effect) if inspect.iscoroutinefunction(effect) else self._called(effect)

    def _called(self, effect: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(effect)
        def once(connection: Any, event: str | Identified, /, *args: Any, **kwargs: Any) -> Any:
            if self._admit(connection, self._consumer, event):
                return effect(connection, event, *args, **kwargs)
            return None

        return once

    def _awaited(self, effect: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(effect)
        async def once(connection: Any, event: str | Identified, /, *args: Any, **kwargs: Any) -> Any:
            if await self._aadmit(connection, self._consumer, event):
                return await effect(connection, event, *args, **kwargs)
            return None

        return once
