"""The composition root: settings become stores, transports and relays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.observations import Observer
from pillarbox.core.store import Store
from pillarbox.core.transport import Transport
from pillarbox.ops.settings import TRANSPORT, Settings
from pillarbox.relay.relay import Relay

_TRANSPORTS = "use amqp://…, console:// or handlers:MODULE:OBJECT"


def open_store(url: str) -> Store:
    """The store behind a URL. Raises ConfigurationError if no store knows it, or its driver is not installed."""
    scheme, has_scheme, _ = url.partition("://")
    try:
        match scheme:
            case "postgresql" | "postgres":
                from pillarbox.stores.postgres import PostgresStore

                return PostgresStore(url)
            case "sqlite":
                from pillarbox.stores.sqlite import SqliteStore

                return SqliteStore(url)
            case "memory":
                from pillarbox.stores.memory import MemoryStore

                return MemoryStore()
    except ImportError as missing:
        raise ConfigurationError(str(missing)) from missing
    # Without a scheme the text may be anything, a password included: it is not repeated.
    what = f"{scheme}://" if has_scheme else "this URL"
    raise ConfigurationError(f"no store for {what}: use postgresql://…, sqlite:///file.db or memory://")


def open_transport(settings: Settings) -> tuple[Transport, str]:
    """The way out that the settings name, and how events are routed on it, for people. Raises ConfigurationError."""
    given = settings.transport
    if not given:
        raise ConfigurationError(f"{TRANSPORT} is not set, so there is no way out for events: {_TRANSPORTS}")
    scheme, has_scheme, rest = given.partition(":")
    try:
        match scheme:
            case "amqp" | "amqps":
                from pillarbox.transports.rabbitmq import RabbitMQ

                broker = RabbitMQ(given, send_timeout=settings.tuning.send_timeout)
                return broker, "each event to the durable queue named after its type on RabbitMQ"
            case "console":
                from pillarbox.transports.console import Console

                return Console(), "each event to standard output"
            case "handlers":
                return _import_handlers(rest), f"each event to every handler of its type in {rest}"
    except ImportError as missing:
        raise ConfigurationError(str(missing)) from missing
    what = f"{scheme}:" if has_scheme else "this text"
    raise ConfigurationError(f"{TRANSPORT}: no transport for {what} {_TRANSPORTS}")


def make_relay(
    settings: Settings,
    store: Store,
    transport: Transport,
    *,
    name: str,
    observers: Sequence[Observer] = (),
    on_stall: Callable[[str], None] | None = None,
) -> Relay:
    """A relay as the settings want it, between this store and this transport."""
    return Relay(
        store=store,
        transports={"default": transport},
        retry=settings.retry,
        tuning=settings.tuning,
        name=name,
        observers=observers,
        on_stall=on_stall,
    )


def _import_handlers(path: str) -> Transport:
    from pillarbox.transports.handlers import Handlers

    module, colon, attribute = path.partition(":")
    if not (module and colon and attribute):
        raise ConfigurationError(
            f"{TRANSPORT}: write handlers:MODULE:OBJECT, for example handlers:shop.events:handlers"
        )
    # The application lies where the command is run, wherever the command itself is installed.
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(import_module(module), attribute)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{module}.".startswith(f"{missing.name}."):
            raise
        raise ConfigurationError(f"{TRANSPORT}: there is no module {missing.name!r} here") from None
    except AttributeError:
        raise ConfigurationError(f"{TRANSPORT}: module {module!r} has no {attribute!r}") from None
    if not isinstance(found, Handlers):
        raise ConfigurationError(f"{TRANSPORT}: {path} is a {type(found).__name__}, not Handlers")
    return found
