"""The registry of handlers. The name of a handler is also its destination: keep it across releases."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from pillarbox.core.errors import ConfigurationError, RecordError
from pillarbox.core.event import MAX_TEXT_BYTES, check_text
from pillarbox.transports.handlers.calls import Handler, HandlerContext, HandlerFunction, ReceivedEvent
from pillarbox.transports.handlers.transport import HandlerTransport

F = TypeVar("F", bound=HandlerFunction)


class HandlerObject(Protocol):
    """A handler as an object; it may also have `name` and `aclose()`."""

    @property
    def event_type(self) -> str | Sequence[str]:
        """A type, a pattern, or several of them."""
        ...

    def handle(self, event: ReceivedEvent, context: HandlerContext) -> Any:
        """Sync or async, like any handler."""
        ...


class Handlers(HandlerTransport):
    """A registry of handlers to decorate functions with, and the transport that calls them.

    timeout, workers, upcast: as in `HandlerTransport`.
    """

    def on(self, *event_types: str, name: str | None = None) -> Callable[[F], F]:
        """Decorate a function `(event, context)`, sync or async, as the handler of these event types.

        An event type may be a pattern such as `order.*`. `name` defaults to module.qualname.
        Raises ConfigurationError if the name is in use.
        """

        def decorate(function: F) -> F:
            self.register(handler_of(function, event_types, name or _default_name(function)))
            return function

        return decorate

    def add(self, handler: HandlerObject) -> None:
        """Add an object with `event_type` (one or several) and `handle(event, context)`.

        The object may have a `name`, and an `aclose()`, which `Handlers.aclose` awaits.

        Raises ConfigurationError if the name is in use.
        """
        types = handler.event_type
        name = getattr(handler, "name", None) or _default_name(type(handler))
        self.register(handler_of(handler.handle, [types] if isinstance(types, str) else types, name))
        if close := getattr(handler, "aclose", None):
            self._closing.append(close)


def handler_of(function: HandlerFunction, event_types: Sequence[str], name: str) -> Handler:
    """Create a handler. Raises ConfigurationError for an invalid name, event type or function."""
    if not event_types:
        raise ConfigurationError(f'handler {name}: name at least one event type; "*" stands for all')
    for text in (name, *event_types):
        try:
            check_text(f"handler {name!r}", text, MAX_TEXT_BYTES)
        except RecordError as error:
            raise ConfigurationError(str(error)) from None
    _check_function(name, function)
    return Handler(name=name, event_types=tuple(event_types), function=function, is_async=_is_async(function))


def _default_name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - a callable object's own method is what may be async


def _check_function(name: str, function: Any) -> None:
    if not callable(function):
        raise ConfigurationError(f"handler {name}: {function!r} is not callable; pass a function or an object")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(f"handler {name}: it is a generator, so calling it would do nothing; remove the yield")
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        raise ConfigurationError(
            f"handler {name}: it cannot be called with (event, context); give it these two parameters"
        ) from None
    except ValueError:
        return  # some built-ins have no signature
