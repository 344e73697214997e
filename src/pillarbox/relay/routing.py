"""Which destinations an event has: routes are data, first match wins, several destinations split the event.

Everything is checked when the relay is built: a route to nowhere, an address that no transport takes or that several
would take. After that only an event type without a route can stop an event.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Literal, NamedTuple, cast

from pillarbox.core.errors import ConfigurationError, RecordError
from pillarbox.core.event import MAX_TEXT_BYTES, check_text
from pillarbox.core.message import Message
from pillarbox.core.store import EVERYWHERE
from pillarbox.core.transport import Address, Transport
from pillarbox.relay.envelope import Body, BodyName, body_of
from pillarbox.settings import Choice, Text, Texts, about, check_settings, documented, setting

MAX_CACHED = 4096
"""How many kinds of events a relay caches the destinations of; beyond that it starts over."""
MAX_BY_TYPE = 1000
"""How many destinations event types create by default: each is a queue on a broker, and state in every relay."""

Ordering = Literal["strict", "pipelined"]
"""How messages of one key go to a destination."""

_PERIODS = {"s": 1, "m": 60, "h": 3600}
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*([smh])")


def per_second(rate: str | float) -> float:
    """`500/s`, `30/m`, `1000/h` or a number, per second. Raises ConfigurationError for anything else."""
    if isinstance(rate, (int, float)) and not isinstance(rate, bool) and 0 < rate < float("inf"):
        return float(rate)
    if isinstance(rate, str) and (written := _RATE.fullmatch(rate.strip())) and float(written[1]) > 0:
        return float(written[1]) / _PERIODS[written[2]]
    raise ConfigurationError(
        f"rate_limit {rate!r} is not a rate above zero; write for example 500/s, 30/m or 1000/h, or pause it"
    )


def rate_text(rate: float) -> str:
    """A rate per second as settings write it and `per_second` reads it: in the first period that it fits evenly."""
    for unit, period in _PERIODS.items():
        if (count := round(rate * period)) and math.isclose(count, rate * period):
            return f"{count}/{unit}"
    return f"{rate:g}/s"


@dataclass(frozen=True, slots=True)
class Rate(Text):
    """Messages per second, minute or hour. In Python a number is one per second."""

    @property
    def word(self) -> str:
        return "rate above zero"

    def check(self, value: Any) -> None:
        try:
            per_second(value)
        except ConfigurationError:
            raise ValueError("write a rate above zero with its period, for example 500/s, 30/m or 1000/h") from None

    def read(self, value: Any) -> str:
        self.check(value if isinstance(value, str) else "")
        return str(value)


@dataclass(frozen=True, slots=True)
class BodyForm(Choice):
    """The name of a body; in Python also the body itself."""

    def check(self, value: Any) -> None:
        if not isinstance(value, Body):
            super(BodyForm, self).check(value)


@documented
@dataclass(frozen=True, kw_only=True)
class DestinationOptions:
    """The settings of a destination besides its address."""

    python_name: ClassVar[str] = "Destination"

    body: Body | BodyName = setting(
        "payload",
        BodyForm.of(BodyName),
        "What is sent: the recorded bytes, a JSON object around them, or a CloudEvent.",
    )
    rate_limit: str | float | None = setting(
        None, Rate(), "Messages over all relays at most, as in `500/s`, `30/m`, `1000/h`. Not set: no limit."
    )
    ordering: Ordering = setting(
        "strict",
        Choice.of(Ordering),
        "`strict`: the next event of a key is sent after the one before was confirmed. `pipelined`: several events of "
        "a key are sent in one batch, in order; one that the broker rejects arrives after those behind it. "
        "RabbitMQ, Kafka, NATS, Redis and memory support `pipelined`.",
    )

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True, init=False)
class Destination:
    """Where a transport delivers to: address, form of the messages, rate limit and ordering.

    `DestinationOptions` describes the arguments, with units and defaults. Raises ConfigurationError for an invalid
    body, rate or ordering.
    """

    address: Address
    body: Body
    rate_limit: float | None
    """Messages per second over all relays; None = as many as there are."""
    ordering: Ordering

    def __init__(
        self,
        address: Address,
        *,
        body: Body | BodyName = DestinationOptions.body,
        rate_limit: str | float | None = DestinationOptions.rate_limit,
        ordering: Ordering = DestinationOptions.ordering,
    ) -> None:
        if not isinstance(cast(object, address), Address):
            raise ConfigurationError(f"{address!r} is not an address; use what a transport's `to` gives")
        DestinationOptions(body=body, rate_limit=rate_limit, ordering=ordering)  # checks them
        object.__setattr__(self, "address", address)
        object.__setattr__(self, "body", body_of(body))
        object.__setattr__(self, "rate_limit", None if rate_limit is None else per_second(rate_limit))
        object.__setattr__(self, "ordering", ordering)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Events whose type and aggregate type match these patterns (`*`, `?`, `[…]`, case counts) go to these
    destinations. An event without aggregate type matches `*` only.

    Raises ConfigurationError for a route to nowhere, to one destination twice, or with an impossible name.
    """

    event_type: str = setting("*", Text(), "A pattern of event types: `*`, `?`, `[…]`.")
    aggregate_type: str = setting("*", Text(), "A pattern of aggregate types.")
    to: Sequence[str] = field(metadata=about(Texts(), "The destinations."))

    def __post_init__(self) -> None:
        if isinstance(self.to, str):
            raise ConfigurationError(f'a route goes to a list of destinations: write to=["{self.to}"]')
        object.__setattr__(self, "to", tuple(self.to))
        for what in ("event_type", "aggregate_type"):
            _check_name(f"the pattern {what} of a route", getattr(self, what))
        for name in self.to:
            _check_destination(name)
        if not self.to:
            raise ConfigurationError(f"the route {self} goes nowhere; name at least one destination")
        if len(set(self.to)) < len(self.to):
            raise ConfigurationError(f"the route {self} names a destination twice")

    def __str__(self) -> str:
        of = "" if self.aggregate_type == "*" else f" of {self.aggregate_type}"
        return f"{self.event_type}{of} → {' + '.join(self.to)}"

    def matches(self, event_type: str, aggregate_type: str | None) -> bool:
        """Whether an event of this kind takes this route."""
        return fnmatchcase(event_type, self.event_type) and fnmatchcase(aggregate_type or "", self.aggregate_type)


class DestinationEndpoint(NamedTuple):
    """A destination and the transport that serves it."""

    name: str
    destination: Destination
    transport_name: str
    transport: Transport


class Routing:
    """Resolves the destinations of a message. Raises ConfigurationError for names and addresses that do not match."""

    def __init__(
        self,
        routes: Sequence[Route],
        destinations: Mapping[str, Destination | Address],
        transports: Mapping[str, Transport],
        *,
        max_by_type: int = MAX_BY_TYPE,
    ) -> None:
        """max_by_type: how many destinations event types may create, if there are neither routes nor destinations."""
        if not transports:
            raise ConfigurationError("there is no transport, so nothing can be sent; pass at least one")
        for name in transports:
            _check_name("the name of a transport", name)
        self._routes = tuple(routes)
        self.transports = dict(transports)
        self.by_type = not routes and not destinations
        """Whether event types create destinations."""
        self.max_by_type = max_by_type
        self._endpoints = {name: self._endpoint_of(name, given) for name, given in destinations.items()}
        self._known: dict[tuple[str, str | None], tuple[str, ...]] = {}
        for route in self._routes:
            for name in route.to:
                if name not in self._endpoints:
                    raise ConfigurationError(
                        f"the route {route} names the destination {name!r}, which does not exist"
                        + _nearest(name, self._endpoints)
                    )

    def resolve(self, message: Message) -> tuple[str, ...]:
        """The names of the destinations of `message`; () where no route matches or its own destination is not known."""
        if message.destination and not self.by_type:
            return (message.destination,) if message.destination in self._endpoints else ()
        kind = (message.event_type, message.aggregate_type)
        names = self._known.get(kind)
        if names is None:
            names = self._defaults(message.event_type) if self.by_type else self._routed(*kind)
            if len(self._known) >= MAX_CACHED:
                self._known.clear()
            if names:  # a handler may be registered later
                self._known[kind] = names
        if message.destination:
            return (message.destination,) if message.destination in names else ()
        return names

    @property
    def full(self) -> bool:
        """Whether event types have created as many destinations as they may: a new type has no route."""
        return self.by_type and len(self._endpoints) >= self.max_by_type

    def endpoint(self, name: str) -> DestinationEndpoint:
        """A destination with its transport. Raises KeyError for a name that `resolve` never returned."""
        return self._endpoints[name]

    def endpoints(self) -> list[DestinationEndpoint]:
        """The destinations known so far: all of them, unless event types create them."""
        return list(self._endpoints.values())

    def _routed(self, event_type: str, aggregate_type: str | None) -> tuple[str, ...]:
        return next((tuple(route.to) for route in self._routes if route.matches(event_type, aggregate_type)), ())

    def _defaults(self, event_type: str) -> tuple[str, ...]:
        made: dict[str, DestinationEndpoint] = {}
        for transport_name, transport in self.transports.items():
            for given, address in transport.defaults(event_type).items():
                taken = made.get(given) or self._endpoints.get(given)
                # Two transports may choose one name, and neither is to take the other's events away.
                name = given if taken is None or taken.transport is transport else f"{transport_name}/{given}"
                made[name] = DestinationEndpoint(name, Destination(address), transport_name, transport)
        if len(self._endpoints) + sum(name not in self._endpoints for name in made) > self.max_by_type:
            return ()
        self._endpoints |= made
        return tuple(made)

    def _endpoint_of(self, name: str, given: Destination | Address) -> DestinationEndpoint:
        _check_destination(name)
        destination = given if isinstance(given, Destination) else Destination(given)
        transport_name = self._transport_of(name, destination.address)
        transport = self.transports[transport_name]
        if destination.ordering == "pipelined" and (transport.pace.independent_results or not transport.pace.in_order):
            raise ConfigurationError(
                f"the destination {name!r} is pipelined, but its transport {transport_name!r} does not keep the order "
                'of the messages in one batch; leave ordering out, or set it to "strict"'
            )
        if transport.pace.capacity is not None:
            transport.pace.capacity(destination.address, {})  # it knows whose shares to keep before the first send
        return DestinationEndpoint(name, destination, transport_name, transport)

    def _transport_of(self, name: str, address: Address) -> str:
        wanted, kind = address.transport, type(address).__name__
        if wanted and wanted not in self.transports:
            raise ConfigurationError(
                f"the destination {name!r} wants the transport {wanted!r}, which does not exist"
                + _nearest(wanted, self.transports)
            )
        fitting = [key for key, transport in self.transports.items() if isinstance(address, transport.address_type)]
        if wanted in fitting:
            return wanted
        if wanted:
            takes = self.transports[wanted].address_type.__name__
            raise ConfigurationError(
                f"the destination {name!r} is a {kind}, but its transport {wanted!r} takes {takes}"
            )
        if not fitting:
            raise ConfigurationError(
                f"the destination {name!r} is a {kind}, which none of the transports {_and(self.transports)} takes"
            )
        if len(fitting) > 1:
            raise ConfigurationError(
                f"the destination {name!r} could go through {_and(fitting, 'or')}; say which with transport="
            )
        return fitting[0]


def _check_destination(name: object) -> None:
    _check_name("the name of a destination", name)
    if name == EVERYWHERE:
        raise ConfigurationError(f"the name of a destination is {name!r}, which stands for all of them; choose another")


def _check_name(what: str, name: object) -> None:
    try:
        check_text(what, name, MAX_TEXT_BYTES)
    except RecordError as error:
        raise ConfigurationError(str(error)) from None


def _nearest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    if near := get_close_matches(name, names, n=1):
        return f"; did you mean {near[0]!r}?"
    return f"; there are {_and(names)}" if names else "; there is none"


def _and(names: Iterable[str], word: str = "and") -> str:
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last
