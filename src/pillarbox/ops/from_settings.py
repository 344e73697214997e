"""Create relays and outboxes from a settings file, for `Relay.from_settings` and `Outbox.from_settings`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from pillarbox.ops.settings import Settings
from pillarbox.ops.settings.sources import find_file
from pillarbox.ops.wiring import make_outbox, make_relay, open_store, open_transports

if TYPE_CHECKING:
    from pillarbox.core.event import RecordObserver
    from pillarbox.core.observations import Observer
    from pillarbox.record.outbox import Outbox
    from pillarbox.record.registry import EventTypes
    from pillarbox.relay.relay import Relay

Path = str | os.PathLike[str]


def load(path: Path | None, environment: Mapping[str, str] | None) -> Settings:
    """Load settings from a file and the environment. Raises ConfigurationError."""
    variables = os.environ if environment is None else environment
    return Settings.load(find_file(None if path is None else os.fspath(path), variables), variables)


def outbox(
    path: Path | None,
    *,
    environment: Mapping[str, str] | None,
    registry: EventTypes | None,
    observers: Sequence[RecordObserver],
) -> Outbox:
    """Create an outbox. Raises ConfigurationError."""
    return make_outbox(load(path, environment), registry=registry, observers=observers)


def relay(
    path: Path | None, *, environment: Mapping[str, str] | None, observers: Sequence[Observer] | None
) -> tuple[Relay, AsyncExitStack]:
    """Create a relay without connecting, and the stack that closes store and transports. Raises ConfigurationError.

    observers: None: one that logs.
    """
    settings, opened = load(path, environment), AsyncExitStack()
    store, transports = open_store(settings.store, ledger=settings.store.ledger), open_transports(settings)
    opened.push_async_callback(store.aclose)
    for transport in transports.values():
        opened.push_async_callback(transport.aclose)
    if observers is None:
        from pillarbox.telemetry.logs import RelayLog

        settings.logging.limit_event_lines(keep=True)
        observers = [RelayLog()]
    return make_relay(settings, store=store, transports=transports, observers=observers), opened
