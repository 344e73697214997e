"""RabbitMQ as an adapter: its URL and its settings. The driver is imported only when something is opened."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import unquote, urlsplit

from pillarbox.admin.broker_dead_letters import BrokerDeadLetters
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, PermanentError, UnavailableError
from pillarbox.core.message import Message
from pillarbox.core.source import Source
from pillarbox.core.transport import Address, Transport
from pillarbox.plugins import DrillQueue, ScratchQueue, TransportDiagnosis, TransportPlugin
from pillarbox.settings import Span, Text, check_settings, documented, listed, setting
from pillarbox.settings.shared import connect_timeout_setting, declare_setting, window_setting
from pillarbox.settings.tls import Tls, TlsOptions, tls_context, tls_grouped
from pillarbox.settings.urls import check_one_login, port_of
from pillarbox.transports.address_template import NOT_IN_NAMES, AddressTemplate
from pillarbox.transports.rabbitmq.topology import (
    MAX_NAME_BYTES,
    Binding,
    DeadLetterTarget,
    Exchange,
    Queue,
    check_name,
    fits,
)

if TYPE_CHECKING:
    from pillarbox.transports.rabbitmq.driver import ConnectionParameters
    from pillarbox.transports.rabbitmq.transport import RabbitMQTransport

_PORTS = {"amqp": 5672, "amqps": 5671}
_SCRATCH_EXPIRES = 600_000
"""Milliseconds after which the broker deletes the unused queue of a benchmark that was killed."""


@documented
@dataclass(frozen=True, kw_only=True)
class RabbitMQOptions(TlsOptions):
    """The settings of a broker besides its URL."""

    python_name: ClassVar[str] = "RabbitMQTransport"

    window: int = window_setting()
    declare: bool = declare_setting()
    connect_timeout: Duration = connect_timeout_setting()
    heartbeat: Duration = setting(
        "30s",
        Span(("never",), minimum="1s"),
        "The AMQP heartbeat: how soon a broken, idle connection is detected.",
    )
    exchanges: Sequence[Exchange] = listed(Exchange)
    queues: Sequence[Queue] = listed(Queue)

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitMQAddress(Address):
    """An exchange and a routing key; '' is the default exchange, whose routing key is a queue's name.

    An address is checked when it is created. What only a message can get wrong (a value it lacks, a routing key that
    grows too long) is an error of that message.
    """

    cloudevents_prefix: ClassVar[str] = "cloudEvents_"

    exchange: str = setting(
        "", Text(), "The exchange. Empty: the default exchange, whose routing key is the name of a queue."
    )
    routing_key: str = setting(
        "{event_type}",
        Text(),
        "The routing key, which may contain `{event_type}`, `{aggregate_type}`, `{aggregate_id}` and `{key}`.",
    )
    _template: AddressTemplate = field(init=False, repr=False, compare=False)
    fixed_key: str | None = field(init=False, repr=False, compare=False)
    """The routing key if it is the same for every message."""

    def __post_init__(self) -> None:
        if self.exchange != "":
            check_name("the exchange", self.exchange)
        template = AddressTemplate.parse("the routing key", self.routing_key)
        if not fits(template.literals):
            raise ConfigurationError(f"the routing key {self.routing_key[:40]!r}… has over {MAX_NAME_BYTES} bytes")
        if self.exchange == "" and not template.parts:
            raise ConfigurationError("the default exchange needs a routing key: the name of a queue")
        object.__setattr__(self, "_template", template)
        object.__setattr__(self, "fixed_key", template.fixed)

    def key_for(self, message: Message) -> str:
        """The routing key of this message. Raises PermanentError if it lacks a value or the key cannot be sent."""
        if self.fixed_key is not None:
            return self.fixed_key
        key = self._template.name_for(message)
        if not fits(key):
            raise PermanentError(
                f"the routing key of event {message.event_id} cannot be sent: over {MAX_NAME_BYTES} bytes or not "
                f"UTF-8 ({key[:40]!r}…); shorten {self.routing_key!r} or the values in it"
            )
        if self.exchange == "" and (not key or NOT_IN_NAMES.search(key)):
            raise PermanentError(
                f"there can be no queue {key!r} for event {message.event_id}: its name is empty, or has a control "
                f"character; change {self.routing_key!r} or the values in it"
            )
        return key

    def destination_name(self, message: Message) -> str:
        """Exchange and routing key, as OpenTelemetry names destinations on RabbitMQ."""
        return f"{self.exchange}:{self.key_for(message)}" if self.exchange else self.key_for(message)

    def matches(self, pattern: str, exchange_type: str) -> bool:
        """Whether a binding of an exchange receives it. In a topic, `*` is one word and `#` any number of them."""
        if exchange_type == "topic":
            return _words_match(pattern.split("."), self.routing_key.split("."))
        return exchange_type == "fanout" or pattern == self.routing_key


def _words_match(pattern: list[str], words: list[str]) -> bool:
    if not pattern:
        return not words
    first, *rest = pattern
    if first == "#":
        return any(_words_match(rest, words[at:]) for at in range(len(words) + 1))
    return bool(words) and first in ("*", words[0]) and _words_match(rest, words[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEndpoint:
    """One broker with one node or several, one virtual host, one user. `str` shows neither user nor password. Over
    `amqps` certificate and host name are verified, unless `tls` says otherwise."""

    servers: tuple[tuple[str, int], ...]
    vhost: str
    user: str = field(repr=False)
    password: str = field(repr=False)
    tls: ssl.SSLContext | None = field(repr=False, compare=False)

    @classmethod
    def parse(cls, url: str, tls: Tls = None) -> Self:
        """Parse `amqp://user:password@host:port,host:port/vhost`. Raises ConfigurationError, which never quotes it."""
        scheme, _, rest = url.partition("://")
        if scheme not in _PORTS:
            raise ConfigurationError(
                "the broker's URL must begin with amqp:// or amqps://, as in amqp://app@mq:5672/%2F"
            )
        authority, _, vhost = rest.partition("/")
        login, has_login, hosts = authority.rpartition("@")
        check_one_login(login)
        if "@" in vhost:
            # A / in the password has cut the URL in two: what looks like a virtual host is the password's end.
            raise ConfigurationError("user, password and host in the broker's URL cannot be told apart; write / as %2F")
        if any(mark in rest for mark in "?#"):
            raise ConfigurationError("the broker's URL takes no options after the virtual host; pass them as arguments")
        if "/" in vhost:
            raise ConfigurationError("a slash in the virtual host's name is written %2F in the broker's URL")
        user, has_password, password = login.partition(":")
        if "," in hosts and "" in hosts.split(","):
            raise ConfigurationError("a node in the broker's URL is empty; write amqp://host1:5672,host2:5672/")
        return cls(
            servers=tuple(_server(host, _PORTS[scheme]) for host in hosts.split(",")),
            vhost=unquote(vhost) or "/",
            user=unquote(user) if has_login and user else "guest",
            password=unquote(password) if has_password else "" if user else "guest",
            tls=tls_context(tls, scheme, secure="amqps"),
        )

    @property
    def nodes(self) -> tuple[Self, ...]:
        """An endpoint for each node."""
        return tuple(replace(self, servers=(server,)) for server in self.servers)

    def __str__(self) -> str:
        return f"{', '.join(f'{host}:{port}' for host, port in self.servers)}, virtual host {self.vhost!r}"

    def parameters(self, *, heartbeat: float) -> ConnectionParameters:
        """pika's parameters for the first node: one attempt without timeouts. The relay retries, and the caller limits
        the time."""
        from pillarbox.transports.rabbitmq.driver import ConnectionParameters, PlainCredentials, SSLOptions

        host, port = self.servers[0]
        return ConnectionParameters(
            host=host,
            port=port,
            virtual_host=self.vhost,
            credentials=PlainCredentials(self.user, self.password),
            ssl_options=None if self.tls is None else SSLOptions(self.tls, host),
            heartbeat=round(heartbeat),
            connection_attempts=1,
            retry_delay=0,
            socket_timeout=None,
            stack_timeout=None,
            client_properties={"connection_name": "pillarbox"},
        )


def _server(text: str, default: int) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        port = parts.port
    except ValueError:
        raise ConfigurationError("a host or port in the broker's URL cannot be read") from None
    return parts.hostname or "localhost", port_of(port, default)


class RabbitMQPlugin(TransportPlugin):
    """`amqp://…` and `amqps://…`; exchanges and queues are tables as in pillarbox.toml."""

    kind = "rabbitmq"
    default_routing = "each event to the durable queue named after its type on RabbitMQ"
    pipelined = True
    dead_letter_queues = True
    scratch_queues = True
    drills = True
    sources = True

    def open(self, url: str, options: Mapping[str, Any]) -> Transport:
        from pillarbox.transports.rabbitmq.transport import RabbitMQTransport

        given = tls_grouped(options)
        exchanges, queues = _exchanges(given.pop("exchanges", ())), _queues(given.pop("queues", ()))
        return RabbitMQTransport(url, exchanges=exchanges, queues=queues, **given)

    def address(self, destination: str, options: Mapping[str, Any]) -> Address:
        return RabbitMQAddress(**options)

    def target(self, name: str) -> Address:
        return RabbitMQAddress(routing_key=name)

    def diagnosis(
        self, url: str, options: Mapping[str, Any], addresses: Mapping[str, Address]
    ) -> TransportDiagnosis | None:
        from pillarbox.transports.rabbitmq.diagnosis import RabbitMQDiagnosis

        return RabbitMQDiagnosis(
            url,
            exchanges=_exchanges(options.get("exchanges", ())),
            queues=_queues(options.get("queues", ())),
            addresses={name: one for name, one in addresses.items() if isinstance(one, RabbitMQAddress)},
            declare=options.get("declare", RabbitMQOptions.declare),
            tls=tls_grouped(options).get("tls"),
        )

    def dead_letters(
        self, url: str, options: Mapping[str, Any], *, timeout: Duration | None = None
    ) -> BrokerDeadLetters:
        from pillarbox.transports.rabbitmq.dead_letters import RabbitMQDeadLetters

        return RabbitMQDeadLetters(
            url,
            heartbeat=options["heartbeat"],
            connect_timeout=timeout or options["connect_timeout"],
            reply_timeout=timeout or options["send_timeout"],
            tls=tls_grouped(options).get("tls"),
        )

    def queues(self, options: Mapping[str, Any], addresses: Mapping[str, Address]) -> Mapping[str, str | None]:
        declared = {
            queue.name: None if queue.dead_letter is None else queue.dead_letter.queue
            for queue in _queues(options.get("queues", ()))
        }
        sent = (to.fixed_key for to in addresses.values() if isinstance(to, RabbitMQAddress) and not to.exchange)
        return declared | {name: declared.get(name) for name in sent if name is not None}

    def source(self, url: str, name: str, group: str, options: Mapping[str, Any]) -> Source:
        from pillarbox.transports.rabbitmq.source import RabbitMQSource

        return RabbitMQSource(url, queue=name, **tls_grouped(options))

    def scratch(self, url: str, options: Mapping[str, Any], name: str) -> ScratchQueue:
        from pillarbox.transports.rabbitmq.transport import RabbitMQTransport

        queue = Queue(name=name, arguments={"x-expires": _SCRATCH_EXPIRES})
        limits = {key: options[key] for key in ("window", "send_timeout", "heartbeat", "connect_timeout")}
        limits["tls"] = tls_grouped(options).get("tls")
        return _RabbitMQScratch(RabbitMQTransport(url, queues=[queue], **limits), name)

    def drill_queue(self, url: str, options: Mapping[str, Any], name: str) -> DrillQueue:
        from pillarbox.transports.rabbitmq.drill import RabbitMQDrillQueue

        return RabbitMQDrillQueue(url, options, name)


class _RabbitMQScratch:
    """A quorum queue on the default exchange."""

    def __init__(self, transport: RabbitMQTransport, name: str) -> None:
        self.transport = transport
        self.address = RabbitMQAddress(exchange="", routing_key=name)
        self._name = name

    async def drop(self) -> None:
        with suppress(ConfigurationError, UnavailableError):  # then the queue expires
            await self.transport.delete_queue(self._name)


def at_least_one(name: str, number: int) -> int:
    """The number. Raises ConfigurationError if it is not an integer of at least 1."""
    if type(number) is not int or number < 1:
        raise ConfigurationError(f"{name} is {number!r}; it must be an integer of at least 1")
    return number


def positive(name: str, duration: Duration) -> float:
    """The duration in seconds. Raises ConfigurationError if it is not positive."""
    if (number := seconds(duration, field=name)) > 0:
        return number
    raise ConfigurationError(f"{name} is {duration!r}; it must be greater than zero")


def _exchanges(given: Any) -> list[Exchange]:
    return [one if isinstance(one, Exchange) else Exchange(**one) for one in given]


def _queues(given: Any) -> list[Queue]:
    queues: list[Queue] = []
    for one in given:
        if isinstance(one, Queue):
            queues.append(one)
            continue
        table = dict(one)
        dead = table.get("dead_letter")
        table["bindings"] = [Binding(**binding) for binding in table.get("bindings", ())]
        table["dead_letter"] = None if dead is None else DeadLetterTarget(**dead)
        queues.append(Queue(**table))
    return queues
