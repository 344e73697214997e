"""Stores and transports by the scheme of a URL: ours, and those that other distributions register.

A distribution registers an adapter by entry point, in its pyproject.toml:

    [project.entry-points."pillarbox.stores"]
    mariadb = "pillarbox_mariadb:MariaDBPlugin"     # a StorePlugin

    [project.entry-points."pillarbox.transports"]
    nats = "pillarbox_nats:NatsPlugin"              # a TransportPlugin

The name of the entry point is the scheme of the URL: `nats://…`. From then on the adapter works in `open_store` and
`open_transport`, in pillarbox.toml, on the command line, in the console and in the doctor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Protocol

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.broker_dead_letters import BrokerDeadLetters
from pillarbox.admin.diagnosis import Check, CheckResult, failed, passed
from pillarbox.core.clock import Duration
from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.core.store import LedgerKind
from pillarbox.core.text import Size, payload_limit
from pillarbox.core.transport import Address, Transport
from pillarbox.settings import Flag, FlagOr, check_settings, setting
from pillarbox.settings.shared import MAX_PAYLOAD
from pillarbox.table_names import DEFAULT_TABLES, TableNames

STORES = "pillarbox.stores"
TRANSPORTS = "pillarbox.transports"

# Ours are registered here instead of in pyproject.toml: to look through the metadata of all installed distributions
# would take longer than most commands do.
_OURS = {
    STORES: {
        "postgresql": "pillarbox.stores.plugins:PostgresPlugin",
        "postgres": "pillarbox.stores.plugins:PostgresPlugin",
        "sqlite": "pillarbox.stores.plugins:SqlitePlugin",
        "memory": "pillarbox.stores.plugins:MemoryPlugin",
    },
    TRANSPORTS: {
        "amqp": "pillarbox.transports.plugins:RabbitMQPlugin",
        "amqps": "pillarbox.transports.plugins:RabbitMQPlugin",
        "stdout": "pillarbox.transports.plugins:StdoutPlugin",
        "memory": "pillarbox.transports.plugins:MemoryPlugin",
    },
}


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
        "What knows that an event was sent, so that a repeat of its id is not: `history` as long as it is kept, or, "
        "with `true`, a ledger that is written before every send. `false`: a repeat is sent.",
    )
    max_payload: int = payload_limit(MAX_PAYLOAD)
    """Bytes of the largest payload that the tables accept."""
    statement_timeout: Duration = "30s"
    """How long one statement may take: half of what a round of the relay may take before it counts as stalled."""
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
    """A temporary store beside another one, for `pillarbox bench`."""

    @property
    def url(self) -> str: ...
    @property
    def options(self) -> StoreOptions: ...

    async def drop(self) -> None:
        """Delete its tables; succeeds also if they were not created. Raises StoreUnavailableError."""
        ...


class StorePlugin:
    """Makes a store of a URL. Subclass it, and register the subclass as an entry point."""

    shared: ClassVar[bool] = True
    """Whether other processes can open the same store."""
    scratch_stores: ClassVar[bool] = False
    """Whether `pillarbox bench` can create a temporary store: then override `scratch`."""

    def open(self, url: str, options: StoreOptions) -> AdminStore:
        """The store; opens no connection. Raises ConfigurationError."""
        raise NotImplementedError

    def producer(self, url: str) -> Producer:
        """How `pillarbox record` and `pillarbox bench` record on the store. Raises ConfigurationError."""
        raise ConfigurationError(
            f"{scheme_of(url)}:// cannot be recorded on from the command line; record in the application"
        )

    def scratch(self, url: str, options: StoreOptions, name: str) -> ScratchStore:
        """A temporary store beside this one; `name` is unique. Creates nothing."""
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
        """Delete the queue; succeeds also if it was not created."""
        ...


class TransportPlugin:
    """Makes a transport of a URL. Subclass it, and register the subclass as an entry point."""

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

    def queues(
        self, options: Mapping[str, Any], destinations: Mapping[str, Mapping[str, Any]]
    ) -> Mapping[str, str | None]:
        """The queues that events are sent to → the dead-letter queue of each; None: `NAME.dlq`, if that exists.

        destinations: the options of the destinations behind this transport, by name.
        """
        return {}

    def scratch(self, url: str, options: Mapping[str, Any], name: str) -> ScratchQueue:
        """A transport with a temporary queue of that unique name; opens no connection."""
        raise NotImplementedError


class _Ping:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def checks(self) -> Sequence[Check]:
        return [Check(name="transport.reachable", ask=self._ask, gate=True)]

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def _ask(self) -> CheckResult:
        try:
            await self._transport.ping()
        except UnavailableError as error:
            return failed(str(error), "make the destination reachable, or correct the transport's url")
        return passed("the transport can send")


def open_store(
    url: str,
    *,
    tables: TableNames = StoreOptions.tables,
    history: bool = StoreOptions.history,
    ledger: LedgerKind = StoreOptions.ledger,
    max_payload: Size = MAX_PAYLOAD,
    statement_timeout: Duration = StoreOptions.statement_timeout,
    options: Mapping[str, Any] | None = None,
) -> AdminStore:
    """The store at a URL: `postgresql://…`, `sqlite:///file.db`, `memory://`, or that of an installed adapter.

    Opens no connection. Raises ConfigurationError for a URL that names no store, and ImportError with the extra to
    install where the engine's driver is missing. The arguments are those of `StoreOptions`; `options` are the engine's
    own.
    """
    given = StoreOptions(
        tables=tables,
        history=history,
        ledger=ledger,
        max_payload=payload_limit(max_payload),
        statement_timeout=statement_timeout,
        extra=options or {},
    )
    return store_plugin(scheme_of(url)).open(url, given)


def open_transport(url: str, **options: Any) -> Transport:
    """The transport at a URL: `amqp://…`, `stdout://`, `memory://`, or that of an installed adapter.

    Opens no connection. `options` are those of the transport, as in `[transports.NAME]`. Raises ConfigurationError for
    a URL that names no transport, and ImportError with the extra to install where its driver is missing.
    """
    return transport_plugin(scheme_of(url)).open(url, options)


def scheme_of(url: str) -> str:
    """What precedes `://`; '' if nothing does."""
    scheme, has_scheme, _ = url.partition("://")
    return scheme if has_scheme else ""


def is_registered(group: str, scheme: str) -> bool:
    """Whether an adapter of that group has this scheme."""
    return scheme in _OURS[group] or bool(_entry_points(group, scheme))


def store_plugin(scheme: str) -> StorePlugin:
    """Raises ConfigurationError for a scheme that no store has."""
    plugin: type[StorePlugin] = _load(STORES, scheme, "store")
    return plugin()


def transport_plugin(scheme: str) -> TransportPlugin:
    """Raises ConfigurationError for a scheme that no transport has."""
    plugin: type[TransportPlugin] = _load(TRANSPORTS, scheme, "transport")
    return plugin()


def kind_of_transport(scheme: str) -> str:
    """What messages call the transport of this scheme. Raises ConfigurationError."""
    return transport_plugin(scheme).kind or scheme


def _load(group: str, scheme: str, what: str) -> Any:
    if scheme in _OURS[group]:
        module, _, attribute = _OURS[group][scheme].partition(":")
        return getattr(import_module(module), attribute)
    found = _entry_points(group, scheme)
    if not found:
        known = ", ".join(f"{one}://" for one in _OURS[group])
        named = f"{scheme}://" if scheme else "a URL without a scheme"
        raise ConfigurationError(
            f"there is no {what} for {named}; use {known}, or install a distribution that registers {scheme or 'it'!r} "
            f"under {group!r}"
        )
    if len(found) > 1:
        names = " and ".join(sorted(point.dist.name if point.dist else point.value for point in found))
        raise ConfigurationError(f"{names} both register {scheme!r} under {group!r}; uninstall one of them")
    [point] = found
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"the {what} for {scheme}:// cannot be loaded from {point.value}: {error}; reinstall its distribution"
        ) from error


def _entry_points(group: str, scheme: str) -> list[Any]:
    if not scheme:
        return []
    from importlib.metadata import entry_points  # takes longer to import than most commands to run

    return list(entry_points(group=group, name=scheme))
