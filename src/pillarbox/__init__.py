"""A transactional outbox: business rows and events in one transaction, every committed event delivered.

The public names are loaded when they are first asked for, so that `import pillarbox` costs nothing and needs
nothing that is not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pillarbox.bus import DirectEventBus, EventBus, OutboxEventBus
    from pillarbox.core.errors import (
        CommandError,
        ConfigurationError,
        DuplicateEventError,
        GoneError,
        InboxError,
        InvalidConnectionError,
        NackedError,
        NotInTransactionError,
        PermanentError,
        PillarboxError,
        RecordError,
        RejectedError,
        RelayFailedError,
        RowsRefusedError,
        SchemaError,
        SendError,
        SettingsError,
        StoreUnavailableError,
        UnavailableError,
        UnknownDestinationError,
        WebhookVerificationError,
    )
    from pillarbox.core.event import Event
    from pillarbox.inbox.consumed_event import ConsumedEvent
    from pillarbox.inbox.consumer import Consumer
    from pillarbox.inbox.inbox import Inbox
    from pillarbox.record.outbox import Outbox
    from pillarbox.record.registry import EventTypes
    from pillarbox.relay.config import BreakerConfig, RelayConfig, RetentionConfig
    from pillarbox.relay.relay import Relay
    from pillarbox.relay.routing import Destination, Route
    from pillarbox.retry_policies import ExponentialBackoff, FixedDelay, NoRetry
    from pillarbox.schemes import open_source, open_store, open_transport
    from pillarbox.settings import InvalidSettingError
    from pillarbox.settings.tls import TlsOptions
    from pillarbox.table_names import TableNames
    from pillarbox.transports.handlers import HandlerContext, Handlers, ReceivedEvent

__version__ = "0.1.0"

__all__ = [
    "BreakerConfig",
    "CommandError",
    "ConfigurationError",
    "ConsumedEvent",
    "Consumer",
    "Destination",
    "DirectEventBus",
    "DuplicateEventError",
    "Event",
    "EventBus",
    "EventTypes",
    "ExponentialBackoff",
    "FixedDelay",
    "GoneError",
    "HandlerContext",
    "Handlers",
    "Inbox",
    "InboxError",
    "InvalidConnectionError",
    "InvalidSettingError",
    "NackedError",
    "NoRetry",
    "NotInTransactionError",
    "Outbox",
    "OutboxEventBus",
    "PermanentError",
    "PillarboxError",
    "ReceivedEvent",
    "RecordError",
    "RejectedError",
    "Relay",
    "RelayConfig",
    "RelayFailedError",
    "RetentionConfig",
    "Route",
    "RowsRefusedError",
    "SchemaError",
    "SendError",
    "SettingsError",
    "StoreUnavailableError",
    "TableNames",
    "TlsOptions",
    "UnavailableError",
    "UnknownDestinationError",
    "WebhookVerificationError",
    "__version__",
    "open_source",
    "open_store",
    "open_transport",
]

_HOMES = {
    "pillarbox.bus": ("DirectEventBus", "EventBus", "OutboxEventBus"),
    "pillarbox.core.errors": (
        "CommandError",
        "ConfigurationError",
        "DuplicateEventError",
        "GoneError",
        "InboxError",
        "InvalidConnectionError",
        "NackedError",
        "NotInTransactionError",
        "PermanentError",
        "PillarboxError",
        "RecordError",
        "RejectedError",
        "RelayFailedError",
        "RowsRefusedError",
        "SchemaError",
        "SendError",
        "SettingsError",
        "StoreUnavailableError",
        "UnavailableError",
        "UnknownDestinationError",
        "WebhookVerificationError",
    ),
    "pillarbox.core.event": ("Event",),
    "pillarbox.inbox.consumed_event": ("ConsumedEvent",),
    "pillarbox.inbox.consumer": ("Consumer",),
    "pillarbox.inbox.inbox": ("Inbox",),
    "pillarbox.settings": ("InvalidSettingError",),
    "pillarbox.schemes": ("open_source", "open_store", "open_transport"),
    "pillarbox.record.outbox": ("Outbox",),
    "pillarbox.settings.tls": ("TlsOptions",),
    "pillarbox.retry_policies": ("FixedDelay", "ExponentialBackoff", "NoRetry"),
    "pillarbox.record.registry": ("EventTypes",),
    "pillarbox.relay.relay": ("Relay",),
    "pillarbox.relay.routing": ("Destination", "Route"),
    "pillarbox.relay.config": ("BreakerConfig", "RelayConfig", "RetentionConfig"),
    "pillarbox.table_names": ("TableNames",),
    "pillarbox.transports.handlers": ("HandlerContext", "Handlers", "ReceivedEvent"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker that saw it would believe every name

    def __getattr__(name: str) -> object:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
