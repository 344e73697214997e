"""The composition root: settings become stores, outboxes, transports and relays. Nothing here opens a connection.

Most commands need a store and nothing else, so each function imports what it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pillarbox import schemes
from pillarbox.admin.admin import AdminStore
from pillarbox.admin.broker_dead_letters import BrokerDeadLetters
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.store import LedgerKind
from pillarbox.core.transport import Address, Transport
from pillarbox.ops.importing import import_object, installed
from pillarbox.ops.settings import Settings, StoreSettings
from pillarbox.ops.settings.sources import no_transport
from pillarbox.ops.settings.transports import DestinationSettings, TransportSettings
from pillarbox.plugins import DrillQueue, ScratchQueue, ScratchStore, StoreOptions, TransportDiagnosis

if TYPE_CHECKING:
    from pillarbox.core.event import RecordObserver
    from pillarbox.core.observations import Observer
    from pillarbox.record.outbox import Outbox
    from pillarbox.record.registry import EventTypes
    from pillarbox.relay.envelope import Body
    from pillarbox.relay.relay import Relay
    from pillarbox.relay.routing import Destination


def open_store(
    store: StoreSettings, *, ledger: LedgerKind = False, statement_timeout: Duration | None = None
) -> AdminStore:
    """Open the store of the settings; statement_timeout: replaces the one of the settings.

    Raises ConfigurationError, also if its driver is not installed.
    """
    options = _store_options(store, ledger=ledger, statement_timeout=statement_timeout)
    with installed():
        return schemes.store_plugin(schemes.scheme_of(store.url)).open(store.url, options)


def grants(store: StoreSettings, *, owner: str) -> str:
    """Return the SQL of the grants for roles; owner: the role that owns the tables. Raises ConfigurationError."""
    with installed():
        return schemes.store_plugin(schemes.scheme_of(store.url)).grants(store.url, _store_options(store), owner)


def with_scratch_store(settings: Settings, name: str) -> tuple[Settings, ScratchStore]:
    """A temporary store alongside that of the settings, and the settings with this store.

    Raises ConfigurationError if it is not supported.
    """
    scheme = schemes.scheme_of(settings.store.url)
    plugin = schemes.store_plugin(scheme)
    if not plugin.scratch_stores:
        raise ConfigurationError(f"{scheme}:// does not support temporary tables; use another store")
    scratch = plugin.scratch(settings.store.url, _store_options(settings.store), name)
    options = scratch.options
    store = replace(
        settings.store,
        url=scratch.url,
        schema=options.tables.schema,
        prefix=options.tables.prefix,
        options=options.extra or None,
    )
    return replace(settings, store=store), scratch


def _store_options(
    store: StoreSettings, *, ledger: LedgerKind = False, statement_timeout: Duration | None = None
) -> StoreOptions:
    return StoreOptions(
        tables=store.tables,
        history=store.history,
        ledger=ledger,
        max_payload=store.max_payload,
        statement_timeout=statement_timeout or store.statement_timeout,
        extra=store.options or {},
    )


def make_outbox(
    settings: Settings, *, registry: EventTypes | None = None, observers: Sequence[RecordObserver] = ()
) -> Outbox:
    """Create the outbox of the settings. Raises ConfigurationError."""
    from pillarbox.record.outbox import Outbox

    return Outbox(
        tables=settings.store.tables,
        registry=registry,
        duplicate=settings.record.duplicate,
        wakeup=settings.record.wakeup,
        strict_order=settings.record.strict_order,
        max_payload=settings.record.max_payload,
        observers=observers,
    )


def open_transports(settings: Settings) -> dict[str, Transport]:
    """Open the transports by name, at least one. Raises ConfigurationError, also if a driver is not installed."""
    if not settings.transports:
        raise ConfigurationError(no_transport(settings.file))
    return {name: _open_transport(settings, name, given) for name, given in settings.transports.items()}


def open_broker_dead_letters(settings: Settings, name: str, *, timeout: Duration | None = None) -> BrokerDeadLetters:
    """Open the dead-letter queues on the broker of a transport; timeout: for connecting and for each response.

    Raises ConfigurationError, also if the driver is not installed.
    """
    given = settings.transports[name]
    with installed(), _naming_setting(settings, "transports", name):
        return given.plugin.dead_letters(given.url or "", _options(settings, given), timeout=timeout)


def open_scratch_queue(settings: Settings, transport: str, name: str) -> ScratchQueue:
    """Open a temporary queue of a transport. Raises ConfigurationError, also if the driver is not installed."""
    given = settings.transports[transport]
    with installed(), _naming_setting(settings, "transports", transport):
        return given.plugin.scratch(given.url or "", _options(settings, given), name)


def open_drill_queue(settings: Settings, transport: str, name: str) -> DrillQueue:
    """Open the queue of a drill. Raises ConfigurationError, also if the driver is not installed."""
    given = settings.transports[transport]
    with installed(), _naming_setting(settings, "transports", transport):
        return given.plugin.drill_queue(given.url or "", _options(settings, given), name)


def transport_queues(settings: Settings, name: str) -> Mapping[str, str | None]:
    """Map the queues of a transport to their dead-letter queues; None: the default."""
    given = settings.transports[name]
    return given.plugin.queues(_options(settings, given), _addresses(settings, name))


def open_transport_diagnosis(settings: Settings, name: str, created: Sequence[str] = ()) -> TransportDiagnosis | None:
    """Return the doctor's checks of a transport with its settings; None if there are none.

    created: destinations that are not in the settings, because event types create them. Raises ConfigurationError, also
    if the driver is not installed.
    """
    with installed(), _naming_setting(settings, "transports", name):
        given = settings.transports[name]
        addresses = _addresses_by_type(given, created) | _addresses(settings, name)
        facts = {"retry_horizon": _retry_horizon(settings), "max_payload": settings.store.max_payload}
        options = _options(settings, given) | (facts if given.has_own else {})
        return given.plugin.diagnosis(given.url or "", options, addresses)


def make_relay(
    settings: Settings,
    *,
    store: AdminStore,
    transports: Mapping[str, Transport],
    name: str = "",
    observers: Sequence[Observer] = (),
    on_stall: Callable[[str], None] | None = None,
    fail_fast: bool = False,
) -> Relay:
    """Create the relay of the settings with this store and these transports. Raises ConfigurationError."""
    from pillarbox.relay.relay import Relay

    destinations = {name: _destination(settings, name, given) for name, given in settings.destinations.items()}
    for to, destination in destinations.items():
        with _naming_setting(settings, "destinations", to):
            _check_handler(destination.address, transports)
    return Relay(
        store=store,
        transports=transports,
        destinations=destinations,
        routes=settings.routes,
        retry=settings.relay.policy,
        config=settings.relay.config,
        name=name or settings.relay.name,
        observers=observers,
        on_stall=on_stall,
        fail_fast=fail_fast,
    )


def describe_routing(settings: Settings) -> str:
    """Describe in one line how events are routed."""
    if settings.routes:
        return "; ".join(str(route) for route in settings.routes)
    if settings.destinations:
        return f"no routes: only events that name their destination are sent, to {', '.join(settings.destinations)}"
    return ", and ".join(_default_routing(given) for given in settings.transports.values())


def _default_routing(given: TransportSettings) -> str:
    text = given.plugin.default_routing or f"each event to the defaults of {given.kind}"
    return text.format(given.import_)


def _open_transport(settings: Settings, name: str, given: TransportSettings) -> Transport:
    with installed(), _naming_setting(settings, "transports", name):
        if given.import_ is not None:
            from pillarbox.transports.handlers import Handlers

            handlers = import_object(given.import_, Handlers)
            handlers.configure(**given.own)
            handlers.reopen()
            return handlers
        return given.plugin.open(given.url or "", _options(settings, given))


def _options(settings: Settings, given: TransportSettings) -> dict[str, Any]:
    """The settings of a transport. Those with settings of their own also take the timeout of a send from the relay."""
    timeout = {"send_timeout": settings.relay.config.send_timeout} if given.has_own else {}
    return {**given.own, **timeout}


def _retry_horizon(settings: Settings) -> float:
    """Seconds after which a message is sent again at the latest whose first result was lost: the relay crashed, its
    lease expires, the destination is probed. An outage may last longer."""
    relay = settings.relay.config
    return seconds(relay.lease) + seconds(relay.send_timeout) + seconds(relay.breaker.max_delay)


def _destination(settings: Settings, name: str, given: DestinationSettings) -> Destination:
    from pillarbox.relay.routing import Destination

    with _naming_setting(settings, "destinations", name):
        return Destination(
            _address(settings, name, given), body=_body(given), rate_limit=given.rate_limit, ordering=given.ordering
        )


def _addresses(settings: Settings, transport: str) -> dict[str, Address]:
    """The addresses of the destinations behind a transport, by name."""
    reached = {to: one for to, one in settings.destinations.items() if _transport_name(settings, one) == transport}
    return {to: _destination(settings, to, one).address for to, one in reached.items()}


def _addresses_by_type(given: TransportSettings, names: Sequence[str]) -> dict[str, Address]:
    """The queue, topic, subject or stream of each name; none if the transport has no such."""
    try:
        return {name: given.plugin.target(name) for name in names}
    except ConfigurationError:
        return {}


def _address(settings: Settings, name: str, given: DestinationSettings) -> Address:
    transport = settings.transports[_transport_name(settings, given)]
    if given.target is not None:
        address = transport.plugin.target(given.target)
    else:
        address = transport.plugin.address(name, given.own(transport))
    return replace(address, transport=_transport_name(settings, given))


def _transport_name(settings: Settings, given: DestinationSettings) -> str:
    return given.transport or next(iter(settings.transports))


def _check_handler(address: Address, transports: Mapping[str, Transport]) -> None:
    """Raises ConfigurationError for an unknown handler: the module is imported, so that no handler is added later."""
    from pillarbox.transports.handlers import HandlerAddress, Handlers

    handlers = transports[address.transport]
    if isinstance(handlers, Handlers) and isinstance(address, HandlerAddress) and address.name not in handlers.names:
        known = f"the handlers are {', '.join(handlers.names)}" if handlers.names else "the module registers no handler"
        raise ConfigurationError(f"there is no handler {address.name!r}; {known}")


def _body(given: DestinationSettings) -> Body:
    from pillarbox.relay.envelope import CloudEvents, Envelope, Payload

    match given.body:
        case "payload":
            return Payload()
        case "cloudevents":
            return CloudEvents(source=given.source, mode=given.mode)
        case "envelope":
            return Envelope(
                fields=given.fields,
                from_headers=given.from_headers or {},
                constants=given.constants or {},
                numeric_id=given.numeric_id,
            )


@contextmanager
def _naming_setting(settings: Settings, *path: str) -> Iterator[None]:
    """Add the name of the setting to a ConfigurationError."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"{settings.called(*path)}: {error}") from None
