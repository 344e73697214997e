"""The names that authors of stores, transports and sources import.

    Transport          how messages are sent; `TransportPlugin` creates one from a URL
    Source, Delivery   how messages arrive at a consumer; `TransportPlugin.source` creates one
    Clock, seconds     injected time and durations; `AddressTemplate`: an address that is filled in per message
    Check, passed, …   what the doctor asks, and the results of a check
    Store              what a relay needs of a store; `StorePlugin` creates one from a URL and `StoreOptions`
    Admin, AdminStore  what operators need of a store; `NoAdmin` for a store that implements only part of it
    SqlAdmin, Engine   `Admin` for SQL engines, and what an engine implements for it
    EventTransaction   how `Outbox.record` writes on an engine of another distribution; `InboxTransaction`: the inbox
    …Conformance       the test suites to inherit, with their …Harness and …Capabilities, from the extra `testing`

The types in the signatures of these protocols and the errors that an adapter raises are importable from here as well.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pillarbox.admin.admin import Admin, AdminSchema, AdminStore, NoAdmin, Samples
from pillarbox.admin.archive import Archive, ExpiredCounts
from pillarbox.admin.audit import Audit, AuditEntry, AuditFilter, AuditPage
from pillarbox.admin.broker_dead_letters import BrokerDeadLetter, BrokerDeadLetters, ReceivedDeadLetter
from pillarbox.admin.dead_letters import DeadLetterFilter, DeadLetterPage, DeadLetters, ListedDeadLetter
from pillarbox.admin.destinations import DestinationLoad, OverrideChange, PendingGroup, RecentDelivery
from pillarbox.admin.diagnosis import (
    Check,
    CheckResult,
    Diagnosis,
    OpenTransaction,
    RetriedSummary,
    TableSize,
    TableSizes,
    failed,
    passed,
    schema_checks,
    warned,
)
from pillarbox.admin.keys import BlockedKey, BusiestKey, FirstPending, Keys, Neighbour, QueueView
from pillarbox.admin.listing import (
    EventDetail,
    EventFilter,
    EventPage,
    EventReport,
    Events,
    Failure,
    ListedEvent,
    Position,
)
from pillarbox.admin.overview import ConsumerView, Inspection, LaneView, Overview, RelayView
from pillarbox.admin.replay import DeliveredRow, DeliveryPosition, Progress, Replay, ReplayBatch, ReplayCount, Replays
from pillarbox.admin.requests import Action, Keep, OpenRequest, Requests
from pillarbox.admin.states import EventState, StateCount
from pillarbox.core.clock import Clock, Duration, SystemClock, seconds
from pillarbox.core.errors import (
    ConfigurationError,
    DuplicateEventError,
    GoneError,
    InboxError,
    NackedError,
    NotInTransactionError,
    PermanentError,
    RejectedError,
    RowsRefusedError,
    SchemaError,
    SendError,
    StoreUnavailableError,
    UnavailableError,
)
from pillarbox.core.event import Cause, Event
from pillarbox.core.fetch import Bounds, Due, Fetched, FetchQuery, Messages, NextInQueues, OrphanedQueues, Parked, Ready
from pillarbox.core.lane import (
    Epochs,
    InFlightMessage,
    Lanes,
    OwnedLane,
    RelayRegistration,
    RelaySession,
    Renewal,
    Settled,
)
from pillarbox.core.message import EarlierQuery, Held, KeyQueue, Message, Status
from pillarbox.core.outcome import Dead, Decision, Delivered, Outcome, RequestResults, Resolved, Retry, Split, Writes
from pillarbox.core.rows import (
    AsyncEventTransaction,
    AsyncInboxTransaction,
    EventRow,
    EventTransaction,
    InboxRecord,
    InboxTransaction,
)
from pillarbox.core.source import Delivery, Incoming, Source
from pillarbox.core.statistics import Backlog, BacklogStatistics, ConsumerStatistics, OutcomeStatistics, Sample
from pillarbox.core.store import (
    Capabilities,
    Destinations,
    Ledger,
    LedgerKind,
    MigrationScript,
    Override,
    PriorSend,
    Pruning,
    Retention,
    Schema,
    SchemaStatus,
    Statistics,
    Store,
    Wakeup,
)
from pillarbox.core.transport import Address, Outgoing, Pace, SendResult, StreamingTransport, Transport
from pillarbox.plugins import (
    DrillQueue,
    Producer,
    ScratchQueue,
    ScratchStore,
    StoreOptions,
    StorePlugin,
    TransportDiagnosis,
    TransportPlugin,
)
from pillarbox.statements import NamedStatement, Names, StatementSet, load_statements
from pillarbox.stores.admin.admin import SqlAdmin
from pillarbox.stores.admin.engine import Engine, shared_statements
from pillarbox.table_names import TableNames
from pillarbox.transports.address_template import AddressTemplate

if TYPE_CHECKING:
    from pillarbox.testing.conformance import AdminConformance, ListingConformance, StoreConformance, StoreHarness
    from pillarbox.testing.conformance.sources import (
        SourceCapabilities,
        SourceConformance,
        SourceDeadLetter,
        SourceHarness,
        incoming,
    )
    from pillarbox.testing.conformance.transports import (
        Arrived,
        TransportCapabilities,
        TransportConformance,
        TransportHarness,
        outgoing,
    )

__all__ = [
    "Action",
    "Address",
    "AddressTemplate",
    "Admin",
    "AdminConformance",
    "AdminSchema",
    "AdminStore",
    "Archive",
    "Arrived",
    "AsyncEventTransaction",
    "AsyncInboxTransaction",
    "Audit",
    "AuditEntry",
    "AuditFilter",
    "AuditPage",
    "Backlog",
    "BacklogStatistics",
    "BlockedKey",
    "Bounds",
    "BrokerDeadLetter",
    "BrokerDeadLetters",
    "BusiestKey",
    "Capabilities",
    "Cause",
    "Check",
    "CheckResult",
    "Clock",
    "ConfigurationError",
    "ConsumerStatistics",
    "ConsumerView",
    "Dead",
    "DeadLetterFilter",
    "DeadLetterPage",
    "DeadLetters",
    "Decision",
    "Delivered",
    "DeliveredRow",
    "Delivery",
    "DeliveryPosition",
    "DestinationLoad",
    "Destinations",
    "Diagnosis",
    "DrillQueue",
    "Due",
    "DuplicateEventError",
    "Duration",
    "EarlierQuery",
    "Engine",
    "Epochs",
    "Event",
    "EventDetail",
    "EventFilter",
    "EventPage",
    "EventReport",
    "EventRow",
    "EventState",
    "EventTransaction",
    "Events",
    "ExpiredCounts",
    "Failure",
    "FetchQuery",
    "Fetched",
    "FirstPending",
    "GoneError",
    "Held",
    "InFlightMessage",
    "InboxError",
    "InboxRecord",
    "InboxTransaction",
    "Incoming",
    "Inspection",
    "Keep",
    "KeyQueue",
    "Keys",
    "LaneView",
    "Lanes",
    "Ledger",
    "LedgerKind",
    "ListedDeadLetter",
    "ListedEvent",
    "ListingConformance",
    "Message",
    "Messages",
    "MigrationScript",
    "NackedError",
    "NamedStatement",
    "Names",
    "Neighbour",
    "NextInQueues",
    "NoAdmin",
    "NotInTransactionError",
    "OpenRequest",
    "OpenTransaction",
    "OrphanedQueues",
    "Outcome",
    "OutcomeStatistics",
    "Outgoing",
    "Override",
    "OverrideChange",
    "Overview",
    "OwnedLane",
    "Pace",
    "Parked",
    "PendingGroup",
    "PermanentError",
    "Position",
    "PriorSend",
    "Producer",
    "Progress",
    "Pruning",
    "QueueView",
    "Ready",
    "ReceivedDeadLetter",
    "RecentDelivery",
    "RejectedError",
    "RelayRegistration",
    "RelaySession",
    "RelayView",
    "Renewal",
    "Replay",
    "ReplayBatch",
    "ReplayCount",
    "Replays",
    "RequestResults",
    "Requests",
    "Resolved",
    "Retention",
    "RetriedSummary",
    "Retry",
    "RowsRefusedError",
    "Sample",
    "Samples",
    "Schema",
    "SchemaError",
    "SchemaStatus",
    "ScratchQueue",
    "ScratchStore",
    "SendError",
    "SendResult",
    "Settled",
    "Source",
    "SourceCapabilities",
    "SourceConformance",
    "SourceDeadLetter",
    "SourceHarness",
    "Split",
    "SqlAdmin",
    "StateCount",
    "StatementSet",
    "Statistics",
    "Status",
    "Store",
    "StoreConformance",
    "StoreHarness",
    "StoreOptions",
    "StorePlugin",
    "StoreUnavailableError",
    "StreamingTransport",
    "SystemClock",
    "TableNames",
    "TableSize",
    "TableSizes",
    "Transport",
    "TransportCapabilities",
    "TransportConformance",
    "TransportDiagnosis",
    "TransportHarness",
    "TransportPlugin",
    "UnavailableError",
    "Wakeup",
    "Writes",
    "failed",
    "incoming",
    "load_statements",
    "outgoing",
    "passed",
    "schema_checks",
    "seconds",
    "shared_statements",
    "warned",
]

# Loaded when asked for: they need pytest, which an adapter needs in its tests only.
_SUITES = {
    "pillarbox.testing.conformance": "AdminConformance ListingConformance StoreConformance StoreHarness",
    "pillarbox.testing.conformance.sources": (
        "SourceCapabilities SourceConformance SourceDeadLetter SourceHarness incoming"
    ),
    "pillarbox.testing.conformance.transports": (
        "Arrived TransportCapabilities TransportConformance TransportHarness outgoing"
    ),
}


if not TYPE_CHECKING:  # a type checker that saw it would accept every name

    def __getattr__(name: str) -> object:
        for module, names in _SUITES.items():
            if name in names.split():
                return getattr(import_module(module), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
