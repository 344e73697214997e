"""Kafka as an adapter: its URL and its settings. The driver is imported only when something is opened."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self
from urllib.parse import unquote

from pillarbox.admin.broker_dead_letters import BrokerDeadLetters
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, PermanentError
from pillarbox.core.message import Message
from pillarbox.core.source import Source
from pillarbox.core.transport import Address, Transport
from pillarbox.plugins import DrillQueue, TransportDiagnosis, TransportPlugin
from pillarbox.settings import Choice, Pairs, Text, Whole, check_settings, setting
from pillarbox.settings.shared import connect_timeout_setting, declare_setting, window_setting
from pillarbox.settings.tls import TlsOptions, check_scheme, tls_grouped
from pillarbox.settings.urls import check_one_login
from pillarbox.transports.address_template import AddressTemplate

_log = logging.getLogger("pillarbox.transports.kafka")


class DriverLog:
    """Logs what librdkafka reports, for debugging: errors reach the caller, and a producer's end is often intended."""

    def log(self, _: int, text: str, *values: object) -> None:
        _log.debug(text, *values)


SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

MAX_TOPIC = 249
"""Characters of a topic's name."""
_TOPIC = re.compile(r"[a-zA-Z0-9._-]+")
_PROTOCOLS = {
    ("kafka", False): "PLAINTEXT",
    ("kafka", True): "SASL_PLAINTEXT",
    ("kafkas", False): "SSL",
    ("kafkas", True): "SASL_SSL",
}
_PORT = 9092
_RESERVED = (
    "acks",
    "allow.auto.create.topics",
    "auto.offset.reset",
    "bootstrap.servers",
    "default.topic.config",
    "delivery.report.only.error",
    "delivery.timeout.ms",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.gapless.guarantee",
    "enable.idempotence",
    "group.id",
    "message.timeout.ms",
    "metadata.broker.list",
    "partition.assignment.strategy",
    "partitioner",
    "queue.buffering.max.kbytes",
    "queue.buffering.max.messages",
    "request.required.acks",
    "transactional.id",
)
"""Settings of librdkafka on which delivery, order or the commits of offsets depend; also with the prefix `topic.`,
which the client removes."""


@dataclass(frozen=True, kw_only=True)
class KafkaOptions(TlsOptions):
    """The settings of a cluster besides its URL."""

    python_name: ClassVar[str] = "KafkaTransport"

    window: int = window_setting()
    declare: bool = declare_setting()
    connect_timeout: Duration = connect_timeout_setting()
    partitions: int = setting(
        0, Whole("partitions", zero="the broker's default"), "Partitions of a topic that is created with `declare`."
    )
    replication: int = setting(
        0, Whole("replicas", zero="the broker's default"), "Replicas of a topic that is created with `declare`."
    )
    sasl_mechanism: SaslMechanism = setting(
        "SCRAM-SHA-512", Choice.of(SaslMechanism), "How the user in the URL logs in. No effect without a user."
    )
    client: Mapping[str, Any] | None = setting(
        None,
        Pairs(texts=False),
        "Further settings of librdkafka by their names, such as `compression.type`.",
        secret=True,
    )

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAddress(Address):
    """A topic. The partition follows from the ordering key.

    An address is checked when it is created. What only a message can get wrong (a value it lacks, a character that no
    topic may have) is an error of that message.
    """

    cloudevents_prefix: ClassVar[str] = "ce_"

    topic: str = setting(
        "{event_type}",
        Text(),
        "The topic, which may contain `{event_type}`, `{aggregate_type}`, `{aggregate_id}` and `{key}`.",
    )
    _template: AddressTemplate = field(init=False, repr=False, compare=False)
    fixed_topic: str | None = field(init=False, repr=False, compare=False)
    """The topic if it is the same for every message."""

    def __post_init__(self) -> None:
        template = AddressTemplate.parse("the topic", self.topic)
        if template.fixed is not None:
            check_topic(template.fixed)
        elif template.literals and not _TOPIC.fullmatch(template.literals):
            raise ConfigurationError(f"the topic {self.topic[:60]!r} may contain letters, digits, '.', '_' and '-'")
        object.__setattr__(self, "_template", template)
        object.__setattr__(self, "fixed_topic", template.fixed)

    def destination_name(self, message: Message) -> str:
        return self.topic_for(message)

    def topic_for(self, message: Message) -> str:
        """The topic of this message. Raises PermanentError if it lacks a value or no topic may have the name."""
        if self.fixed_topic is not None:
            return self.fixed_topic
        topic = self._template.name_for(message)
        if not is_topic(topic):
            raise PermanentError(
                f"event {message.event_id} cannot be sent to topic {topic[:60]!r}: a topic has at most {MAX_TOPIC} "
                f"letters, digits, '.', '_' and '-'; change {self.topic!r} or the values in it"
            )
        return topic


def is_topic(name: str) -> bool:
    """Whether Kafka allows a topic of this name."""
    return len(name) <= MAX_TOPIC and name not in (".", "..") and _TOPIC.fullmatch(name) is not None


def check_topic(name: str) -> str:
    """The name. Raises ConfigurationError if no topic may have it."""
    if not is_topic(name):
        raise ConfigurationError(
            f"{name[:60]!r} is not a topic: a name has at most {MAX_TOPIC} letters, digits, '.', '_' and '-'"
        )
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaEndpoint:
    """One cluster, one user. `str` shows neither user nor password."""

    servers: str
    user: str = field(repr=False)
    password: str = field(repr=False)
    protocol: str
    mechanism: str
    tls: TlsOptions
    extra: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, url: str, options: KafkaOptions) -> Self:
        """Parse `kafka://user:password@host:port,host:port`. Raises ConfigurationError, which never quotes the URL."""
        scheme, _, rest = url.partition("://")
        if scheme not in ("kafka", "kafkas"):
            raise ConfigurationError(
                "the cluster's URL must begin with kafka:// or kafkas://, as in kafka://app@k1:9092,k2:9092"
            )
        login, has_login, hosts = rest.rpartition("@")
        check_one_login(login)
        hosts = hosts.removesuffix("/")
        if re.search(r"[/?#]", hosts):
            raise ConfigurationError(
                "the cluster's URL ends after the hosts; write / in a password as %2F, and pass options as settings"
            )
        servers = [_server(host) for host in hosts.split(",")]
        user, has_password, password = login.partition(":")
        if has_login and not (user and has_password):
            raise ConfigurationError("the cluster's URL has a user without a password, or a password without a user")
        tls = TlsOptions.of(options)
        check_scheme(tls, scheme, secure="kafkas")
        return cls(
            servers=",".join(servers),
            user=unquote(user),
            password=unquote(password),
            protocol=_PROTOCOLS[scheme, bool(has_login)],
            mechanism=options.sasl_mechanism,
            tls=tls,
            extra=_extra(options.client or {}),
        )

    def __str__(self) -> str:
        return self.servers

    def settings(self) -> dict[str, Any]:
        """librdkafka's settings of a client, without those of its role."""
        found: dict[str, Any] = {
            "bootstrap.servers": self.servers,
            "security.protocol": self.protocol,
            "client.id": "pillarbox",
            "allow.auto.create.topics": False,
            "log_level": 0,
            "logger": DriverLog(),
        }
        if self.user:
            found |= {"sasl.mechanism": self.mechanism, "sasl.username": self.user, "sasl.password": self.password}
        return {**found, **self._tls_settings(), **self.extra}

    def _tls_settings(self) -> dict[str, Any]:
        tls = self.tls
        files = {"ca": tls.ca_file, "certificate": tls.cert_file, "key": tls.key_file}
        found: dict[str, Any] = {f"ssl.{name}.location": file for name, file in files.items() if file}
        if tls.verify != "full":
            found["ssl.endpoint.identification.algorithm"] = "none"
        if tls.verify == "none":
            found["enable.ssl.certificate.verification"] = False
        return found


def _server(host: str) -> str:
    name, has_port, port = host.rpartition(":")
    if not has_port or host.endswith("]"):
        name, port = host, str(_PORT)
    if not name or re.search(r"\s", name) or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65_536:
        raise ConfigurationError("a host or port in the cluster's URL cannot be read; write host:port,host:port")
    return f"{name}:{port}"


def _extra(given: Mapping[str, Any]) -> dict[str, Any]:
    if reserved := sorted(name for name in given if name.removeprefix("topic.") in _RESERVED):
        raise ConfigurationError(
            f"client: {reserved[0]} cannot be set, because delivery and order depend on it; remove it"
        )
    return dict(given)


class KafkaPlugin(TransportPlugin):
    """`kafka://…` and `kafkas://…`."""

    kind = "kafka"
    default_routing = "each event to the topic named after its type on Kafka"
    pipelined = True
    dead_letter_queues = True
    drills = True
    sources = True

    def open(self, url: str, options: Mapping[str, Any]) -> Transport:
        from pillarbox.transports.kafka.transport import KafkaTransport

        return KafkaTransport(url, **tls_grouped(options))

    def address(self, destination: str, options: Mapping[str, Any]) -> Address:
        return KafkaAddress(**options)

    def target(self, name: str) -> Address:
        return KafkaAddress(topic=name)

    def diagnosis(
        self, url: str, options: Mapping[str, Any], addresses: Mapping[str, Address]
    ) -> TransportDiagnosis | None:
        from pillarbox.transports.kafka.diagnosis import KafkaDiagnosis

        given = {name: value for name, value in options.items() if name in KafkaOptions.__dataclass_fields__}
        ours = {name: one for name, one in addresses.items() if isinstance(one, KafkaAddress)}
        largest = {name: options[name] for name in ("max_payload",) if name in options}
        return KafkaDiagnosis(url, addresses=ours, **tls_grouped(given), **largest)

    def dead_letters(
        self, url: str, options: Mapping[str, Any], *, timeout: Duration | None = None
    ) -> BrokerDeadLetters:
        from pillarbox.transports.kafka.dead_letters import KafkaDeadLetters

        given = tls_grouped({name: options[name] for name in options if name in KafkaOptions.__dataclass_fields__})
        return KafkaDeadLetters(
            url,
            connect_timeout=timeout or options["connect_timeout"],
            reply_timeout=timeout or options["send_timeout"],
            **{name: given[name] for name in ("sasl_mechanism", "tls", "client") if name in given},
        )

    def queues(self, options: Mapping[str, Any], addresses: Mapping[str, Address]) -> Mapping[str, str | None]:
        fixed = (to.fixed_topic for to in addresses.values() if isinstance(to, KafkaAddress))
        return {topic: None for topic in fixed if topic is not None}

    def source(self, url: str, name: str, group: str, options: Mapping[str, Any]) -> Source:
        from pillarbox.transports.kafka.source import KafkaSource

        return KafkaSource(url, topic=name, group=group, **tls_grouped(options))

    def drill_queue(self, url: str, options: Mapping[str, Any], name: str) -> DrillQueue:
        from pillarbox.transports.kafka.drill import KafkaDrillQueue

        return KafkaDrillQueue(url, options, name)


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
