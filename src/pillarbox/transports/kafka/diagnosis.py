"""The checks of a cluster, and of the topics that the settings name. They create nothing and send nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

from pillarbox.admin.diagnosis import Check, CheckResult, failed, passed, warned
from pillarbox.core.clock import Duration
from pillarbox.core.payload import Size, size_in_bytes
from pillarbox.settings.shared import DEFAULT_MAX_PAYLOAD
from pillarbox.settings.tls import TlsOptions
from pillarbox.transports.kafka.driver import (
    FORBIDDEN,
    UNKNOWN_TOPIC,
    AdminClient,
    ConfigResource,
    KafkaError,
    KafkaException,
    error_of,
    reason_of,
)
from pillarbox.transports.kafka.plugin import KafkaAddress, KafkaEndpoint, KafkaOptions, SaslMechanism, positive

T = TypeVar("T")

_LONGEST = 5.0
"""Seconds that a check waits for a reply at most."""
_BATCH_SIZE = 1_000_000
"""Bytes that librdkafka puts into one request for a partition, unless `client` sets `batch.size`."""
_HEADERS = 4096
"""Bytes for the headers and the frame of a message."""

Configurations = Mapping[str, Mapping[str, str]]
"""Topic → its settings by name."""


class KafkaDiagnosis:
    """The checks of one cluster. Connects on first use. Raises ConfigurationError."""

    def __init__(
        self,
        url: str,
        *,
        addresses: Mapping[str, KafkaAddress] | None = None,
        window: int = KafkaOptions.window,
        declare: bool = KafkaOptions.declare,
        partitions: int = KafkaOptions.partitions,
        replication: int = KafkaOptions.replication,
        sasl_mechanism: SaslMechanism = KafkaOptions.sasl_mechanism,
        tls: TlsOptions | None = None,
        client: Mapping[str, Any] | None = None,
        connect_timeout: Duration = KafkaOptions.connect_timeout,
        max_payload: Size = DEFAULT_MAX_PAYLOAD,
    ) -> None:
        """`addresses` are the destinations on this cluster; `connect_timeout` limits each reply, and so do 5 s;
        `max_payload` is the limit of the outbox."""
        options = KafkaOptions(
            window=window,
            declare=declare,
            partitions=partitions,
            replication=replication,
            sasl_mechanism=sasl_mechanism,
            **asdict(tls or TlsOptions()),
            client=client,
        )
        self._options = options
        self._endpoint = KafkaEndpoint.parse(url, options)
        self._timeout = min(positive("connect_timeout", connect_timeout), _LONGEST)
        self._topics = {
            address.fixed_topic: name for name, address in (addresses or {}).items() if address.fixed_topic is not None
        }
        self._max_payload = size_in_bytes(max_payload, field="max_payload")
        self._batch_size = int((client or {}).get("batch.size", _BATCH_SIZE))
        self._admin: Any = None
        self._errors: list[str] = []

    def checks(self) -> Sequence[Check]:
        """In this order: a failed check may explain later ones."""
        return [
            Check(name="transport.reachable", ask=self._reachable, prerequisite=True),
            Check(name="transport.topics", ask=self._existing),
            Check(name="transport.durability", ask=self._durable),
            Check(name="transport.sizes", ask=self._sizes),
        ]

    async def aclose(self) -> None:
        """Close what is open; closing twice is fine."""
        self._admin = None

    async def _reachable(self) -> CheckResult:
        try:
            metadata = await self._ask(partial(self._metadata, "pillarbox-doctor"))
        except KafkaException as error:
            reason = self._errors[-1] if self._errors else reason_of(error_of(error))
            return failed(
                f"Kafka at {self._endpoint} does not respond: {reason}",
                "check that the brokers run and advertise addresses that resolve here, and host, port, user, password "
                "and sasl_mechanism",
            )
        login = "without a login" if not self._endpoint.user else f"with {self._endpoint.mechanism}"
        return passed(f"{len(metadata.brokers)} brokers at {self._endpoint}, {self._endpoint.protocol} {login}")

    async def _existing(self) -> CheckResult:
        found: list[str] = []
        missing: list[str] = []
        refused: list[str] = []
        weak: list[str] = []
        for topic, name in self._topics.items():
            described = (await self._ask(partial(self._metadata, topic))).topics[topic]
            error = described.error
            if error is None:
                replicas = min((len(one.replicas) for one in described.partitions.values()), default=0)
                found.append(f"{topic} ({len(described.partitions)} partitions, {replicas} replicas)")
                if replicas < 2:
                    weak.append(topic)
            elif error.code() in UNKNOWN_TOPIC:
                missing.append(f"{name}: topic {topic!r} does not exist")
            elif error.code() in FORBIDDEN:
                refused.append(f"{name}: topic {topic!r}: {reason_of(error)}")
        if refused:
            return failed("; ".join(refused), "grant this user DESCRIBE and WRITE on the topics")
        if missing and not self._options.declare:
            return failed("; ".join(missing), "create the topics, or set declare = true")
        if missing:
            return warned("; ".join(missing), "the first send creates it if this user may; better create it yourself")
        if weak:
            return warned(
                f"{', '.join(found)}: one replica loses events with its disk", "create topics with three replicas"
            )
        return passed(", ".join(found) or "no destination names a fixed topic")

    async def _durable(self) -> CheckResult:
        return durability_of(await self._configurations())

    async def _sizes(self) -> CheckResult:
        return sizes_of(await self._configurations(), max_payload=self._max_payload, batch_size=self._batch_size)

    async def _configurations(self) -> Configurations:
        """The settings of the topics; empty where the cluster does not tell, or refuses to."""
        if not self._topics:
            return {}
        resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in self._topics]

        def ask(admin: Any) -> Configurations:
            asked: Mapping[Any, Any] = admin.describe_configs(resources, request_timeout=self._timeout)
            found: dict[str, Mapping[str, str]] = {}
            for resource, answer in asked.items():
                try:
                    settings: Mapping[str, Any] = answer.result(self._timeout + 1)
                except (KafkaException, TimeoutError):
                    continue
                found[resource.name] = {name: str(one.value) for name, one in settings.items()}
            return found

        return await self._ask(ask)

    def _metadata(self, topic: str, admin: Any) -> Any:
        return admin.list_topics(topic, timeout=self._timeout)

    async def _ask(self, question: Callable[[Any], T]) -> T:
        return await asyncio.to_thread(self._asked, question)

    def _asked(self, question: Callable[[Any], T]) -> T:
        if self._admin is None:
            self._admin = AdminClient({**self._endpoint.settings(), "error_cb": self._erred})
        try:
            return question(self._admin)
        finally:
            self._admin.poll(0)

    def _erred(self, error: KafkaError) -> None:
        self._errors.append(reason_of(error))


def durability_of(configurations: Configurations) -> CheckResult:
    """What the settings cannot change, and what of the topics decides how much `acks=all` means."""
    fixed = "the producer is idempotent and waits for all in-sync replicas (acks=all)"
    weak = [topic for topic, settings in configurations.items() if settings.get("min.insync.replicas") == "1"]
    if weak:
        return warned(
            f"{fixed}, but min.insync.replicas of {', '.join(weak)} is 1: a single broker may be all of them",
            "set min.insync.replicas=2 with three replicas",
        )
    return passed(fixed)


def sizes_of(configurations: Configurations, *, max_payload: int, batch_size: int) -> CheckResult:
    """Whether topics take the batches of the client, and the largest payload with its headers."""
    limits = {
        topic: int(settings["max.message.bytes"])
        for topic, settings in configurations.items()
        if settings.get("max.message.bytes", "").isdecimal()
    }
    if not limits:
        return passed("the cluster does not say how large a message may be; it refuses larger ones one by one")
    small = {topic: limit for topic, limit in limits.items() if limit < batch_size}
    if small:
        return warned(
            f"max.message.bytes is below a batch of {batch_size} bytes ({_listed(small)}): whole batches are refused",
            'raise max.message.bytes, or set client = { "batch.size" = … } below it',
        )
    needed = max_payload + _HEADERS
    short = {topic: limit for topic, limit in limits.items() if limit < needed}
    if short:
        return warned(
            f"max.message.bytes is below the largest payload of {max_payload} bytes and {_HEADERS} for its headers "
            f"({_listed(short)}): larger events are dead-lettered",
            f"raise max.message.bytes to {needed}, or lower record.max_payload",
        )
    return passed(f"every topic accepts payloads of {max_payload} bytes")


def _listed(limits: Mapping[str, int]) -> str:
    return ", ".join(f"{topic}: {limit}" for topic, limit in limits.items())
