"""NATS as an adapter: its URL and its settings. The driver is imported only when something is opened."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import unquote, urlsplit

from pillarbox.admin.broker_dead_letters import BrokerDeadLetters
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, PermanentError, UnavailableError
from pillarbox.core.message import Message
from pillarbox.core.source import Source
from pillarbox.core.transport import Address, Transport
from pillarbox.plugins import DrillQueue, ScratchQueue, TransportDiagnosis, TransportPlugin
from pillarbox.settings import Text, Whole, check_settings, listed, setting
from pillarbox.settings.shared import DEFAULT_MAX_PAYLOAD, connect_timeout_setting, declare_setting, window_setting
from pillarbox.settings.tls import Tls, TlsOptions, tls_context, tls_grouped
from pillarbox.settings.urls import port_of
from pillarbox.transports.address_template import AddressTemplate
from pillarbox.transports.nats.topology import (
    MAX_REPLICAS,
    Stream,
    check_stream_name,
    check_subject,
    subject_fault,
)

if TYPE_CHECKING:
    from pillarbox.transports.nats.transport import NatsTransport

_PORT = 4222
_NOT_IN_SUBJECTS = re.compile(r"[\s*>%]|[^\x21-\U0010ffff]|[\x7f-\x9f]")
_SCHEMES = ("nats", "tls")


@dataclass(frozen=True, kw_only=True)
class NatsOptions(TlsOptions):
    """The settings of NATS besides its URL."""

    python_name: ClassVar[str] = "NatsTransport"

    window: int = window_setting()
    declare: bool = declare_setting()
    connect_timeout: Duration = connect_timeout_setting()
    replicas: int = setting(
        1,
        Whole("replicas"),
        "Replicas of streams that the relay creates automatically, for subjects without one: up to 5; 3 in a cluster.",
    )
    streams: Sequence[Stream] = listed(Stream)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.replicas > MAX_REPLICAS:
            raise ConfigurationError(f"replicas is {self.replicas}; NATS allows up to {MAX_REPLICAS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsAddress(Address):
    """A subject, and optionally the stream that must store it.

    An address is checked when it is created. What only a message can get wrong (a value it lacks, a subject that grows
    too long) is an error of that message.
    """

    subject: str = setting(
        "{event_type}",
        Text(),
        "The subject, which may contain `{event_type}`, `{aggregate_type}`, `{aggregate_id}` and `{key}`.",
    )
    expected_stream: str = setting(
        "", Text(), "The stream that must store the message: another one refuses it. Empty: whichever has the subject."
    )
    _template: AddressTemplate = field(init=False, repr=False, compare=False)
    fixed_subject: str | None = field(init=False, repr=False, compare=False)
    """The subject if it is the same for every message."""
    creates: bool = field(init=False, repr=False, compare=False)
    """Whether a stream may be created for a subject that has none: not for each aggregate or key."""

    def __post_init__(self) -> None:
        template = AddressTemplate.parse("the subject", self.subject)
        if template.fixed is not None:
            check_subject("the subject", template.fixed, wildcards=False)
        elif fault := subject_fault("".join(literal + (name and "x") for literal, name in template.parts)):
            raise ConfigurationError(f"the subject {self.subject[:80]!r}: {fault}")
        if self.expected_stream != "":
            check_stream_name("the stream", self.expected_stream)
        object.__setattr__(self, "_template", template)
        object.__setattr__(self, "fixed_subject", template.fixed)
        names = {name for _, name in template.parts}
        object.__setattr__(self, "creates", not names & {"aggregate_id", "key"})

    @property
    def pattern(self) -> str | None:
        """The subjects of all messages, as a pattern; None if they have no word in common."""
        if self.fixed_subject is not None:
            return self.fixed_subject
        words = self._template.parts[0][0].rpartition(".")[0]
        return f"{words}.>" if words else None

    def destination_name(self, message: Message) -> str:
        return self.subject_for(message)

    def subject_for(self, message: Message) -> str:
        """The subject of this message. Raises PermanentError if it lacks a value or the subject cannot be sent."""
        if self.fixed_subject is not None:
            return self.fixed_subject
        parts = self._template.parts
        subject = "".join(literal + (self._value(message, name) if name else "") for literal, name in parts)
        if subject.startswith("$") and not parts[0][0]:
            # A message to a subject of the server, such as $JS.API.STREAM.DELETE.orders, is a command.
            subject = f"%24{subject[1:]}"
        if fault := subject_fault(subject):
            raise PermanentError(
                f"the subject {subject[:80]!r} of event {message.event_id} cannot be sent: {fault}; change "
                f"{self.subject!r} or the values in it"
            )
        return subject

    def _value(self, message: Message, name: str) -> str:
        value: str | None = getattr(message, name)
        if value is None:
            raise PermanentError(f"the subject {self.subject!r} needs {name}, which event {message.event_id} lacks")
        return subject_value(value)


def subject_value(value: str) -> str:
    """A value of an event as part of a subject: what a subject cannot hold is percent-encoded, dots stay."""
    if not _NOT_IN_SUBJECTS.search(value):
        return value
    return _NOT_IN_SUBJECTS.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), value)


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsEndpoint:
    """The servers of one cluster, and one user. `str` shows neither user, password nor token. Over `tls` the
    certificate and the host name are verified, unless `tls` says otherwise."""

    servers: tuple[tuple[str, int], ...]
    secure: bool
    user: str | None = field(repr=False)
    password: str | None = field(repr=False)
    token: str | None = field(repr=False)
    tls: ssl.SSLContext | None = field(repr=False, compare=False)

    @classmethod
    def parse(cls, url: str, tls: Tls = None) -> Self:
        """Parse `nats://user:password@host:port,host:port`. Raises ConfigurationError, which never quotes the URL."""
        scheme, separator, rest = url.partition("://")
        if not separator or scheme not in _SCHEMES:
            raise ConfigurationError("the URL must begin with nats:// or tls://, as in nats://app:secret@nats:4222")
        credentials = rest.rpartition("@")[0]
        if "," in credentials:
            # Of `nats://u:p@a,nats://u:p@b` all servers have the same user.
            credentials = credentials.partition("@")[0]
        if any(mark in credentials for mark in "/@?#"):
            raise ConfigurationError(
                "user, password and host in the URL cannot be told apart; write / as %2F, @ as %40, # as %23, ? as "
                "%3F, and name the user of several servers once"
            )
        servers = rest.split(",")
        if len(servers) > 1 and "" in (one.rpartition("@")[2].strip().rstrip("/") for one in servers):
            raise ConfigurationError("a server in the URL of NATS is empty; write nats://host1:4222,host2:4222")
        others = {one.rpartition("://")[2].rpartition("@")[0] for one in servers[1:] if "@" in one}
        if others - {credentials}:
            raise ConfigurationError("the servers of the URL have different users; all of them take that of the first")
        if credentials and "@" not in servers[0]:
            raise ConfigurationError("user and password stand before the first server; write a comma in them as %2C")
        user, colon, password = credentials.partition(":")
        return cls(
            servers=tuple(_server(one, scheme) for one in servers),
            secure=scheme == "tls",
            user=unquote(user) if colon else None,
            password=unquote(password) if colon else None,
            token=unquote(user) if user and not colon else None,
            tls=tls_context(tls, scheme, secure="tls"),
        )

    def __str__(self) -> str:
        return ", ".join(f"{_bracketed(host)}:{port}" for host, port in self.servers)

    def url_of(self, server: tuple[str, int]) -> str:
        """The URL of one server, without credentials."""
        host, port = server
        return f"{'tls' if self.secure else 'nats'}://{_bracketed(host)}:{port}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _server(text: str, scheme: str) -> tuple[str, int]:
    given = text.strip()
    if "://" in given and given.partition("://")[0] != scheme:
        raise ConfigurationError(f"all servers of the URL must begin with {scheme}://")
    try:
        parts = urlsplit(f"{scheme}://{given.rpartition('://')[2].rpartition('@')[2]}")
        port = parts.port
    except ValueError:
        raise ConfigurationError("host or port in the URL of NATS cannot be read") from None
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ConfigurationError("the URL of NATS ends after host and port; pass options as arguments")
    return parts.hostname or "localhost", port_of(port, _PORT)


class NatsPlugin(TransportPlugin):
    """`nats://…` and `tls://…`; streams are tables as in pillarbox.toml."""

    kind = "nats"
    default_routing = "each event to the subject of its type on NATS JetStream, in a stream of its own"
    pipelined = True
    dead_letter_queues = True
    scratch_queues = True
    drills = True
    sources = True

    def open(self, url: str, options: Mapping[str, Any]) -> Transport:
        from pillarbox.transports.nats.transport import NatsTransport

        given = tls_grouped(options)
        return NatsTransport(url, streams=_streams(given.pop("streams", ())), **given)

    def address(self, destination: str, options: Mapping[str, Any]) -> Address:
        return NatsAddress(**options)

    def target(self, name: str) -> Address:
        return NatsAddress(subject=name)

    def source(self, url: str, name: str, group: str, options: Mapping[str, Any]) -> Source:
        from pillarbox.transports.nats.source import NatsSource

        return NatsSource(url, subject=name, group=group or "pillarbox", **tls_grouped(options))

    def diagnosis(
        self, url: str, options: Mapping[str, Any], addresses: Mapping[str, Address]
    ) -> TransportDiagnosis | None:
        from pillarbox.transports.nats.diagnosis import NatsDiagnosis

        return NatsDiagnosis(
            url,
            streams=_streams(options.get("streams", ())),
            addresses={name: one for name, one in addresses.items() if isinstance(one, NatsAddress)},
            declare=options.get("declare", NatsOptions.declare),
            replicas=options.get("replicas", NatsOptions.replicas),
            retry_horizon=options.get("retry_horizon"),
            max_payload=options.get("max_payload", DEFAULT_MAX_PAYLOAD),
            tls=tls_grouped(options).get("tls"),
        )

    def dead_letters(
        self, url: str, options: Mapping[str, Any], *, timeout: Duration | None = None
    ) -> BrokerDeadLetters:
        from pillarbox.transports.nats.dead_letters import NatsDeadLetters

        return NatsDeadLetters(
            url,
            connect_timeout=timeout or options["connect_timeout"],
            reply_timeout=timeout or options["send_timeout"],
            tls=tls_grouped(options).get("tls"),
        )

    def queues(self, options: Mapping[str, Any], addresses: Mapping[str, Address]) -> Mapping[str, str | None]:
        fixed = (to.fixed_subject for to in addresses.values() if isinstance(to, NatsAddress))
        return {subject: None for subject in fixed if subject is not None}

    def scratch(self, url: str, options: Mapping[str, Any], name: str) -> ScratchQueue:
        from pillarbox.transports.nats.transport import NatsTransport

        # The messages of a benchmark that was killed expire.
        replicas = options.get("replicas", NatsOptions.replicas)
        stream = Stream(name=name, subjects=[name], replicas=replicas, max_age="10min")
        limits = {key: options[key] for key in ("window", "send_timeout", "connect_timeout")}
        limits["tls"] = tls_grouped(options).get("tls")
        return _NatsScratch(NatsTransport(url, streams=[stream], **limits), name)

    def drill_queue(self, url: str, options: Mapping[str, Any], name: str) -> DrillQueue:
        from pillarbox.transports.nats.drill import NatsDrillQueue

        return NatsDrillQueue(url, options, name)


class _NatsScratch:
    """A stream with one subject of the same name."""

    def __init__(self, transport: NatsTransport, name: str) -> None:
        self.transport = transport
        self.address = NatsAddress(subject=name)
        self._name = name

    async def drop(self) -> None:
        try:
            await self.transport.delete_stream(self._name)
        except (ConfigurationError, UnavailableError):
            return


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


def _streams(given: Any) -> list[Stream]:
    return [one if isinstance(one, Stream) else Stream(**one) for one in given]
