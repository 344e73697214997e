"""What an adapter registers for the scheme of a URL: a plugin that opens the store, or the transport and the source.

A distribution registers an adapter by entry point, in its pyproject.toml:

    [project.entry-points."pillarbox.stores"]
    cassandra = "pillarbox_cassandra:CassandraPlugin"     # a StorePlugin

    [project.entry-points."pillarbox.transports"]
    pulsar = "pillarbox_pulsar:PulsarPlugin"              # a TransportPlugin

The name of the entry point is the scheme of the URL: `pulsar://…`. From then on the adapter works in `open_store`,
`open_transport` and `open_source`, in pillarbox.toml, on the command line, in the console and in the doctor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.broker_dead_letters import BrokerDeadLetters
from pillarbox.admin.diagnosis import Check, CheckResult, failed, passed
from pillarbox.core.clock import Duration
from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.core.payload import payload_limit
from pillarbox.core.source import Source
from pillarbox.core.store import LedgerKind
from pillarbox.core.transport import Address, Transport
from pillarbox.settings import Flag, FlagOr, Span, check_settings, documented, setting
from pillarbox.settings.shared import DEFAULT_MAX_PAYLOAD
from pillarbox.table_names import DEFAULT_TABLES, TableNames


@documented
@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """The settings of a store besides its URL. An engine ignores those that do not concern it."""

    python_name: ClassVar[str] = "open_store"

    tables: TableNames = DEFAULT_TABLES
    """Prefix and schema of the tables."""
    history: bool = setting(
        True,
        Flag(),
        "Keep delivered events for `relay.retention.history`. `false`: delete them when they are settled.",
    )
    ledger: LedgerKind = setting(
        "history",
        FlagOr(("history",)),
        "Where the relay checks whether an event id was already sent: `history` as long as it is kept, or, with "
        "`true`, a ledger that is written before every send. `false`: nowhere, and a repeated id is sent again.",
    )
    max_payload: int = payload_limit(DEFAULT_MAX_PAYLOAD)
    """Bytes of the largest payload that the tables accept."""
    statement_timeout: Duration = setting(
        "30s", Span(), "How long one statement may take (PostgreSQL, MariaDB). Keep it well below `relay.stall_limit`."
    )
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options of the engine's own, from `[store.options]`."""

    def __post_init__(self) -> None:
        check_settings(self)


class Producer(Protocol):
    """A way to record on a store from the command line: transactions on a connection of its own."""

    @property
    def awaited(self) -> bool:
        """Whether its connections are for `Outbox.arecord`, not for `Outbox.record`."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """A connection in a transaction, which commits at the end of the block and rolls back on an exception."""
        ...

    async def aclose(self) -> None:
        """Close the connection; closing twice is fine."""
        ...


class ScratchStore(Protocol):
    """A temporary store alongside another one, for `pillarbox bench` and `pillarbox drill`."""

    @property
    def url(self) -> str: ...
    @property
    def options(self) -> StoreOptions: ...

    async def existing(self) -> Sequence[str]:
        """What exists under its names, for the operator to read; empty: nothing. Raises StoreUnavailableError."""
        ...

    async def drop(self) -> None:
        """Delete its tables; succeeds also if they were not created. Raises StoreUnavailableError."""
        ...


class StorePlugin:
    """Creates a store from a URL. Subclass it, and register the subclass as an entry point."""

    dialect: ClassVar[str] = ""
    """The module of `pillarbox.dialects` whose statements applications send to the store; '' if there is none."""
    shared: ClassVar[bool] = True
    """Whether other processes can open the same store."""
    ignored: ClassVar[tuple[str, ...]] = ()
    """The settings of `[store]` that have no effect on this store; setting one is reported."""
    scratch_stores: ClassVar[bool] = False
    """Whether `pillarbox bench` and `pillarbox drill` can create a temporary store: then override `scratch`."""

    def open(self, url: str, options: StoreOptions) -> AdminStore:
        """The store; opens no connection. Raises ConfigurationError."""
        raise NotImplementedError

    def producer(self, url: str) -> Producer:
        """How `pillarbox record` and `pillarbox bench` record on the store. Raises ConfigurationError."""
        raise ConfigurationError(
            f"{url.partition('://')[0]}:// cannot be recorded on from the command line; record in the application"
        )

    def grants(self, url: str, options: StoreOptions, owner: str) -> str:
        """The SQL that grants the roles of `schema sql --roles`; `owner` owns the tables. Raises ConfigurationError."""
        raise ConfigurationError(f"--roles: {url.partition('://')[0]}:// has no roles; use a postgresql:// URL")

    def scratch(self, url: str, options: StoreOptions, name: str) -> ScratchStore:
        """A temporary store alongside this one; `name` is unique. Creates nothing."""
        raise NotImplementedError


class TransportDiagnosis(Protocol):
    """The doctor's checks of one transport."""

    def checks(self) -> Sequence[Check]:
        """The checks, in their order."""
        ...

    async def aclose(self) -> None:
        """Close what the checks opened."""
        ...


class ScratchQueue(Protocol):
    """A transport with a temporary queue, for `pillarbox bench`."""

    @property
    def transport(self) -> Transport:
        """Creates the queue when it connects."""
        ...

    @property
    def address(self) -> Address:
        """The address of the queue."""
        ...

    async def drop(self) -> None:
        """Delete the queue over the transport, which is still open; succeeds also if the queue was not created."""
        ...


Reader = Literal["audit", "work"]
"""A consumer of a drill. Each of them receives every message: `audit` writes it down, `work` handles it."""


class DrillQueue(ABC):
    """The queue, topic or stream of a drill, which two readers receive from. Opens no connection before it is used."""

    redelivers_in_order: ClassVar[bool] = False
    """Whether what a reader had not acknowledged when the broker was cut off arrives before what follows."""
    detachable: ClassVar[bool] = False
    """Whether `detach` can make it unreachable for the transport."""

    transport: Transport
    """Sends to it, and declares nothing: `create` does."""
    address: Address

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """What it creates on the broker, for the operator to read: "queue NAME"."""

    @abstractmethod
    def source(self, reader: Reader) -> Source:
        """Where a reader receives the messages."""

    @abstractmethod
    async def existing(self) -> Sequence[str]:
        """Those of `names` that exist already. Raises UnavailableError."""

    @abstractmethod
    async def create(self) -> None:
        """Create it. Raises UnavailableError."""

    @abstractmethod
    async def drop(self) -> None:
        """Delete everything in `names`; succeeds also if it was not created. Raises UnavailableError."""

    async def stored(self) -> Sequence[str] | None:
        """The ids of all events in the order in which the broker stored them; None: only readers can tell. Called after
        an outage, unless `redelivers_in_order`. Raises UnavailableError."""
        return None

    async def detach(self) -> None:
        """Make messages for it unroutable, until `attach`. Raises UnavailableError."""
        raise NotImplementedError

    async def attach(self) -> None:
        """Make it reachable again. Raises UnavailableError."""
        raise NotImplementedError

    @abstractmethod
    async def aclose(self) -> None:
        """Close its connections, and its transport."""


class TransportPlugin:
    """Creates a transport and sources from a URL. Subclass it, and register the subclass as an entry point."""

    kind: ClassVar[str] = ""
    """What messages call the transport; '': the scheme of the URL."""
    default_routing: ClassVar[str] = ""
    """Where events go without any route, in one line: "each event to …"."""
    pipelined: ClassVar[bool] = False
    """Whether its destinations support `ordering = "pipelined"`: `Pace.in_order` of the transport is true."""
    dead_letter_queues: ClassVar[bool] = False
    """Whether its broker has dead-letter queues: then override `dead_letters` and `queues`."""
    scratch_queues: ClassVar[bool] = False
    """Whether `pillarbox bench` can create a temporary queue: then override `scratch`."""
    drills: ClassVar[bool] = False
    """Whether `pillarbox drill` can send to this transport: then override `drill_queue`."""
    sources: ClassVar[bool] = False
    """Whether consumers can receive from its broker: then override `source`."""
    transport_options: ClassVar[type[Any] | None] = None
    """The dataclass whose settings `[transports.NAME.options]` has; None: `open` checks them."""
    destination_options: ClassVar[type[Any] | None] = None
    """The dataclass whose settings `[destinations.NAME.options]` has; None: `address` checks them."""

    def open(self, url: str, options: Mapping[str, Any]) -> Transport:
        """The transport; opens no connection. `options` is the table `[transports.NAME.options]`.

        Raises ConfigurationError.
        """
        raise NotImplementedError

    def address(self, destination: str, options: Mapping[str, Any]) -> Address:
        """The address of a destination. `options` is the table `[destinations.NAME.options]`.

        Raises ConfigurationError.
        """
        raise NotImplementedError

    def target(self, name: str) -> Address:
        """The address of the queue, topic, subject or stream of that name, which `source` receives from.

        Raises ConfigurationError, also if the transport has none.
        """
        raise ConfigurationError(f"{self.kind or 'this transport'} has no queues, topics, subjects or streams")

    def diagnosis(
        self, url: str, options: Mapping[str, Any], addresses: Mapping[str, Address]
    ) -> TransportDiagnosis | None:
        """The doctor's checks; None: there is nothing to check. Unless overridden, one check pings the transport.

        addresses: those of the destinations behind this transport, by name.
        """
        return _Ping(self.open(url, options))

    def dead_letters(
        self, url: str, options: Mapping[str, Any], *, timeout: Duration | None = None
    ) -> BrokerDeadLetters:
        """The dead-letter queues of the broker; opens no connection.

        timeout: of connecting and of each answer; None: that of the options.
        """
        raise NotImplementedError

    def queues(self, options: Mapping[str, Any], addresses: Mapping[str, Address]) -> Mapping[str, str | None]:
        """The queues that events are sent to → the dead-letter queue of each; None: `NAME.dlq`, if that exists.

        addresses: those of the destinations behind this transport, by name.
        """
        return {}

    def source(self, url: str, name: str, group: str, options: Mapping[str, Any]) -> Source:
        """Where a consumer receives what was sent to a queue, topic, subject or stream; opens no connection.

        group: consumers of one group share the messages; brokers whose queues do that ignore it. `options` are those
        of the source's class. Raises ConfigurationError.
        """
        raise NotImplementedError

    def scratch(self, url: str, options: Mapping[str, Any], name: str) -> ScratchQueue:
        """A transport with a temporary queue of that unique name; opens no connection."""
        raise NotImplementedError

    def drill_queue(self, url: str, options: Mapping[str, Any], name: str) -> DrillQueue:
        """The queue of a drill. All that it creates has names that begin with `name`, which is unique."""
        raise NotImplementedError


class _Ping:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def checks(self) -> Sequence[Check]:
        return [Check(name="transport.reachable", ask=self._ask, prerequisite=True)]

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def _ask(self) -> CheckResult:
        try:
            await self._transport.ping()
        except UnavailableError as error:
            return failed(str(error), "make the destination reachable, or correct the transport's url")
        return passed("the transport can send")
