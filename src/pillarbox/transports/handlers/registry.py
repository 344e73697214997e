"""The registry of handlers. The name of a handler is also its destination: keep it across releases."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Protocol

from pillarbox.core.errors import ConfigurationError, RecordError
from pillarbox.core.event import LONGEST_TEXT, check_text
from pillarbox.transports.handlers.received import HandlerContext, ReceivedEvent

_PATTERN = re.compile(r"[*?[]")

HandlerFunction = Callable[[ReceivedEvent, HandlerContext], Any]
"""Sync or async; its result is ignored."""


class HandlerObject(Protocol):
    """A handler as an object; it may also have `name` and `aclose()`."""

    @property
    def event_type(self) -> str | Sequence[str]:
        """A type, a pattern, or several of them."""
        ...

    def handle(self, event: ReceivedEvent, context: HandlerContext) -> Any:
        """Sync or async, like any handler."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A handler function, its name and its event types."""

    name: str
    event_types: tuple[str, ...]
    function: HandlerFunction
    is_async: bool

    @classmethod
    def of(cls, function: HandlerFunction, event_types: Sequence[str], name: str) -> Handler:
        """Create a handler. Raises ConfigurationError for an invalid name, event type or function."""
        if not event_types:
            raise ConfigurationError(f'handler {name}: name at least one event type; "*" stands for all')
        for text in (name, *event_types):
            _check_name(f"handler {name!r}", text)
        _check_function(name, function)
        return cls(name=name, event_types=tuple(event_types), function=function, is_async=_is_async(function))

    def matches(self, event_type: str) -> bool:
        """Whether one of its types or patterns, such as `order.*`, matches; case-sensitive."""
        return any(fnmatchcase(event_type, pattern) for pattern in self.event_types)


class Registry:
    """Handlers by name, in the order in which they were added."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._like: dict[bool, set[str]] = {True: set(), False: set()}
        self._by_type: defaultdict[str, dict[str, int]] = defaultdict(dict)
        """Event type → handlers without patterns, each with its number."""
        self._by_pattern: list[tuple[int, Handler]] = []

    def add(self, handler: Handler) -> None:
        """Add a handler. Raises ConfigurationError if the name is in use."""
        if handler.name in self._handlers:
            raise ConfigurationError(
                f"handler {handler.name} is already registered; give each handler its own name, "
                "and pass all event types of a handler at once"
            )
        number = len(self._handlers)
        self._handlers[handler.name] = handler
        self._like[handler.is_async].add(handler.name)
        if any(_PATTERN.search(given) for given in handler.event_types):
            self._by_pattern.append((number, handler))
        else:
            for event_type in handler.event_types:
                self._by_type[event_type][handler.name] = number

    def find(self, name: str) -> Handler | None:
        """The handler with this name; None if there is none."""
        return self._handlers.get(name)

    @property
    def names(self) -> list[str]:
        return list(self._handlers)

    def like(self, *, is_async: bool) -> Collection[str]:
        """The names of the async ones, or of the sync ones."""
        return self._like[is_async]

    def names_for(self, event_type: str) -> list[str]:
        """The names of all handlers of this type, in the order in which they were added. The cost depends only on the
        number of handlers with a pattern."""
        names = {handler.name: number for number, handler in self._by_pattern if handler.matches(event_type)}
        names |= self._by_type.get(event_type, {})
        return sorted(names, key=names.__getitem__)


def default_name(thing: Any) -> str:
    """module.qualname of a function or a class."""
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


def _check_name(where: str, value: object) -> None:
    try:
        check_text(where, value, LONGEST_TEXT)
    except RecordError as error:
        raise ConfigurationError(str(error)) from None
