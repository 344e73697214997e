"""Handlers in a relay: Django's connections are checked before each call and released after it, as for a request."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

from asgiref.sync import sync_to_async
from django.db import Error, close_old_connections

from pillarbox.ops.importing import import_object
from pillarbox.ops.settings import Settings
from pillarbox.transports.handlers import Handlers
from pillarbox.transports.handlers.calls import Handler, HandlerFunction


def handlers_of(settings: Settings) -> list[Handlers]:
    """The application's handlers that transports import. Raises ConfigurationError."""
    return [import_object(given.import_, Handlers) for given in settings.transports.values() if given.import_]


def manage_connections(settings: Settings, release: Callable[[], None] = close_old_connections) -> None:
    """Let each handler of the settings begin with usable connections, and release them when it returns."""

    def released() -> None:
        # A connection that cannot even be closed is gone; what the handler did is done.
        with suppress(Error):
            release()

    def wrapper(handler: Handler) -> HandlerFunction:
        return _awaited(handler.function, released) if handler.is_async else _called(handler.function, released)

    for handlers in handlers_of(settings):
        handlers.wrap(wrapper)


def _called(function: HandlerFunction, release: Callable[[], None]) -> HandlerFunction:
    @wraps(function)
    def call(event: Any, context: Any) -> Any:
        release()
        try:
            return function(event, context)
        finally:
            release()

    return call


def _awaited(function: HandlerFunction, release: Callable[[], None]) -> HandlerFunction:
    # Django's async ORM works in the thread of `sync_to_async`, so its connections are released there.
    @wraps(function)
    async def call(event: Any, context: Any) -> Any:
        await sync_to_async(release)()
        try:
            return await function(event, context)
        finally:
            await sync_to_async(release)()

    return call
