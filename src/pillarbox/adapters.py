"""The names that authors of stores, transports and sources import.

    Transport          how messages leave: `send(batch)`, `ping()`, `aclose()`; `TransportPlugin` makes one of a URL
    Source, Delivery   how messages arrive at a consumer
    Store              what a relay needs of a store; `StorePlugin` makes one of a URL and of `StoreOptions`
    Admin, AdminStore  what operators need of a store; `NoAdmin` for a store that has not all of it
    …Conformance       the test suites to inherit, from the extra `testing`

The errors that an adapter raises are importable from `pillarbox`, and from here as well.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pillarbox.admin.admin import Admin, AdminStore, NoAdmin
from pillarbox.admin.broker_dead_letters import BrokerDeadLetter, BrokerDeadLetters, ReceivedDeadLetter
from pillarbox.core.errors import (
    ConfigurationError,
    NackedError,
    PermanentError,
    RejectedError,
    RowsRefusedError,
    SchemaError,
    SendError,
    StoreUnavailableError,
    UnavailableError,
)
from pillarbox.core.event import Event
from pillarbox.core.message import Message
from pillarbox.core.source import Delivery, Incoming, Source
from pillarbox.core.store import Capabilities, Store
from pillarbox.core.transport import Address, Outgoing, Pace, Result, StreamingTransport, Transport
from pillarbox.plugins import (
    Producer,
    ScratchQueue,
    ScratchStore,
    StoreOptions,
    StorePlugin,
    TransportDiagnosis,
    TransportPlugin,
)

if TYPE_CHECKING:
    from pillarbox.testing.conformance import AdminConformance, StoreConformance
    from pillarbox.testing.conformance.sources import SourceConformance
    from pillarbox.testing.conformance.transports import TransportConformance

__all__ = [
    "Address",
    "Admin",
    "AdminConformance",
    "AdminStore",
    "BrokerDeadLetter",
    "BrokerDeadLetters",
    "Capabilities",
    "ConfigurationError",
    "Delivery",
    "Event",
    "Incoming",
    "Message",
    "NackedError",
    "NoAdmin",
    "Outgoing",
    "Pace",
    "PermanentError",
    "Producer",
    "ReceivedDeadLetter",
    "RejectedError",
    "Result",
    "RowsRefusedError",
    "SchemaError",
    "ScratchQueue",
    "ScratchStore",
    "SendError",
    "Source",
    "SourceConformance",
    "Store",
    "StoreConformance",
    "StoreOptions",
    "StorePlugin",
    "StoreUnavailableError",
    "StreamingTransport",
    "Transport",
    "TransportConformance",
    "TransportDiagnosis",
    "TransportPlugin",
    "UnavailableError",
]

# Loaded when asked for: they need pytest, which an adapter needs in its tests only.
_SUITES = {
    "AdminConformance": "pillarbox.testing.conformance",
    "SourceConformance": "pillarbox.testing.conformance.sources",
    "StoreConformance": "pillarbox.testing.conformance",
    "TransportConformance": "pillarbox.testing.conformance.transports",
}


if not TYPE_CHECKING:  # a type checker that saw it would accept every name

    def __getattr__(name: str) -> object:
        if name not in _SUITES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_SUITES[name]), name)
