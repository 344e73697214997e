"""Redis as an adapter: its URL and its settings. The driver is imported only when something is opened."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self
from urllib.parse import unquote, urlsplit

from pillarbox.admin.broker_dead_letters import BrokerDeadLetters
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, PermanentError, UnavailableError
from pillarbox.core.message import Message
from pillarbox.core.source import Source
from pillarbox.core.transport import Address, Transport
from pillarbox.plugins import DrillQueue, ScratchQueue, TransportDiagnosis, TransportPlugin
from pillarbox.settings import Choice, Flag, Span, Text, Whole, check_settings, setting
from pillarbox.settings.shared import DEFAULT_MAX_PAYLOAD, connect_timeout_setting
from pillarbox.settings.tls import Tls, TlsOptions, tls_context, tls_grouped
from pillarbox.settings.urls import check_one_login, port_of
from pillarbox.transports.address_template import AddressTemplate

if TYPE_CHECKING:
    from pillarbox.transports.redis.transport import RedisTransport

DEFAULT_GROUP = "pillarbox"
"""The consumer group of a source that names none."""
_SCHEMES = ("redis", "rediss")
_PORT = 6379
_MAX_NAME_BYTES = 65_535
"""Redis accepts names of 512 MiB; a longer name than this one is a mistake."""

Trim = Literal["approximate", "exact"]

_BY_TYPE = AddressTemplate.parse("the stream", "{event_type}")


@dataclass(frozen=True, kw_only=True)
class RedisOptions(TlsOptions):
    """The settings of a server besides its URL."""

    python_name: ClassVar[str] = "RedisTransport"

    connect_timeout: Duration = connect_timeout_setting()
    connections: int = setting(
        4,
        Whole("connections"),
        "Connections to the server, each with one batch at a time. With `appendfsync always` Redis writes the batches "
        "of all connections to disk together: more connections are faster.",
    )
    wait_replicas: int = setting(
        0,
        Whole("replicas", zero="replicas are not waited for"),
        "Replicas that must have received a batch before it counts as accepted (WAIT).",
    )

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisAddress(Address):
    """A stream, and how XADD trims it. Redis creates a stream with its first entry.

    An address is checked when it is created. What only a message can get wrong (a value it lacks) is an error of that
    message.
    """

    stream: str = setting(
        "{event_type}",
        Text(),
        "The stream, which may contain `{event_type}`, `{aggregate_type}`, `{aggregate_id}` and `{key}`.",
    )
    max_length: int | None = setting(
        None,
        Whole("entries"),
        "Entries of the stream, at most: a new entry deletes the oldest ones, even if no consumer has read them. Not "
        "set: no limit.",
    )
    max_age: Duration | None = setting(
        None,
        Span(minimum="1s"),
        "Age of an entry, at most: a new entry deletes older ones, even if no consumer has read them. Not set: no "
        "limit.",
    )
    trim: Trim = setting(
        "approximate",
        Choice.of(Trim),
        "How `max_length` and `max_age` are applied. `approximate` keeps up to a few hundred entries more, and is "
        "cheaper.",
    )
    create_stream: bool = setting(
        True, Flag(), "Create the stream with its first event. `false`: an event for a missing stream is rejected."
    )
    _template: AddressTemplate = field(default=_BY_TYPE, init=False, repr=False, compare=False)
    fixed_stream: str | None = field(default=None, init=False, repr=False, compare=False)
    """The stream if it is the same for every message."""
    max_age_ms: int | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.max_length is not None and self.max_age is not None:
            raise ConfigurationError(
                f"stream {self.stream!r} has max_length and max_age; XADD takes one of them: remove the other"
            )
        template = AddressTemplate.parse("the stream", self.stream)
        if not template.parts:
            raise ConfigurationError("the stream has no name; write one, for example {event_type}")
        object.__setattr__(self, "_template", template)
        object.__setattr__(self, "fixed_stream", template.fixed)
        age = None if self.max_age is None else round(seconds(self.max_age) * 1000)
        object.__setattr__(self, "max_age_ms", age)

    def destination_name(self, message: Message) -> str:
        return self.stream_for(message)

    def stream_for(self, message: Message) -> str:
        """The stream of this message. Raises PermanentError if it lacks a value or the name cannot be sent."""
        if self.fixed_stream is not None:
            return self.fixed_stream
        name = self._template.name_for(message)
        if not name or len(name) > _MAX_NAME_BYTES:
            raise PermanentError(
                f"the stream of event {message.event_id} has {len(name)} characters; it needs 1 to {_MAX_NAME_BYTES}: "
                f"change {self.stream!r} or the values in it"
            )
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisEndpoint:
    """One server, one database, one user. `str` shows neither user nor password. Over `rediss` certificate and host
    name are verified, unless `tls` says otherwise."""

    host: str
    port: int
    database: int
    user: str = field(repr=False)
    password: str | None = field(repr=False)
    tls: ssl.SSLContext | None = field(repr=False, compare=False)

    @classmethod
    def parse(cls, url: str, tls: Tls = None) -> Self:
        """Parse `redis://user:password@host:port/0`. Raises ConfigurationError, which never quotes the URL."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise ConfigurationError("host or port in the URL of Redis cannot be read") from None
        if parts.scheme not in _SCHEMES:
            raise ConfigurationError("the URL of Redis must begin with redis:// or rediss://, as in redis://cache/0")
        if parts.query or parts.fragment:
            raise ConfigurationError("the URL of Redis takes no options after the database; pass them as arguments")
        if "@" in parts.path:
            # A / in the password has cut the URL in two: what looks like a database is the password's end.
            raise ConfigurationError("user, password and host in the URL of Redis cannot be told apart; write / as %2F")
        login, _, server = parts.netloc.rpartition("@")
        check_one_login(login)
        if "," in server:
            raise ConfigurationError("the URL of Redis names one server; clusters and Sentinel are not supported")
        database = parts.path.removeprefix("/") or "0"
        if not re.fullmatch("[0-9]{1,9}", database):
            raise ConfigurationError(
                "the database in the URL of Redis is not a number; write for example redis://host/0"
            )
        return cls(
            host=parts.hostname or "localhost",
            port=port_of(port, _PORT),
            database=int(database),
            user=unquote(parts.username or "") or "default",
            password=None if parts.password is None else unquote(parts.password),
            tls=tls_context(tls, parts.scheme, secure="rediss"),
        )

    def __str__(self) -> str:
        return f"{self.host}:{self.port}, database {self.database}"


class RedisPlugin(TransportPlugin):
    """`redis://…` and `rediss://…`."""

    kind = "redis"
    default_routing = "each event to the stream named after its type on Redis"
    pipelined = True
    dead_letter_queues = True
    scratch_queues = True
    drills = True
    sources = True

    def open(self, url: str, options: Mapping[str, Any]) -> Transport:
        from pillarbox.transports.redis.transport import RedisTransport

        return RedisTransport(url, **tls_grouped(options))

    def address(self, destination: str, options: Mapping[str, Any]) -> Address:
        return RedisAddress(**options)

    def target(self, name: str) -> Address:
        return RedisAddress(stream=name)

    def diagnosis(
        self, url: str, options: Mapping[str, Any], addresses: Mapping[str, Address]
    ) -> TransportDiagnosis | None:
        from pillarbox.transports.redis.diagnosis import RedisDiagnosis

        return RedisDiagnosis(
            url,
            addresses={name: one for name, one in addresses.items() if isinstance(one, RedisAddress)},
            wait_replicas=options.get("wait_replicas", RedisOptions.wait_replicas),
            max_payload=options.get("max_payload", DEFAULT_MAX_PAYLOAD),
            tls=tls_grouped(options).get("tls"),
        )

    def dead_letters(
        self, url: str, options: Mapping[str, Any], *, timeout: Duration | None = None
    ) -> BrokerDeadLetters:
        from pillarbox.transports.redis.dead_letters import RedisDeadLetters

        return RedisDeadLetters(
            url,
            connect_timeout=timeout or options["connect_timeout"],
            reply_timeout=timeout or options["send_timeout"],
            tls=tls_grouped(options).get("tls"),
        )

    def queues(self, options: Mapping[str, Any], addresses: Mapping[str, Address]) -> Mapping[str, str | None]:
        fixed = (to.fixed_stream for to in addresses.values() if isinstance(to, RedisAddress))
        return {stream: None for stream in fixed if stream is not None}

    def source(self, url: str, name: str, group: str, options: Mapping[str, Any]) -> Source:
        from pillarbox.transports.redis.source import RedisSource

        return RedisSource(url, stream=name, group=group or DEFAULT_GROUP, **tls_grouped(options))

    def scratch(self, url: str, options: Mapping[str, Any], name: str) -> ScratchQueue:
        from pillarbox.transports.redis.transport import RedisTransport

        return _RedisScratch(RedisTransport(url, **tls_grouped(options)), name)

    def drill_queue(self, url: str, options: Mapping[str, Any], name: str) -> DrillQueue:
        from pillarbox.transports.redis.drill import RedisDrillQueue

        return RedisDrillQueue(url, options, name)


class _RedisScratch:
    """A stream."""

    def __init__(self, transport: RedisTransport, name: str) -> None:
        self.transport = transport
        self.address = RedisAddress(stream=name)
        self._name = name

    async def drop(self) -> None:
        with suppress(UnavailableError):  # then the operator deletes it
            await self.transport.delete_stream(self._name)
