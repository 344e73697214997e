"""Kafka as a source: a topic whose messages are acknowledged one by one, with a retry topic and a dead-letter topic.

A group commits offsets, not single messages. So a message that fails moves to another topic before its offset counts as
processed: to `TOPIC.GROUP.retry`, which the consumers of the group read, too, and hold each message of until it is due;
or to `TOPIC.GROUP.dlq`. Each group has its own, because each has its own failures.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pillarbox.core.clock import Duration, system_rng
from pillarbox.core.errors import ConfigurationError, PermanentError, UnavailableError
from pillarbox.core.retry import Backoff
from pillarbox.core.source import Incoming
from pillarbox.settings.tls import TlsOptions
from pillarbox.transports.kafka.consumer import KafkaConsumerSession
from pillarbox.transports.kafka.driver import REFUSED, reason_of
from pillarbox.transports.kafka.offsets import Received
from pillarbox.transports.kafka.plugin import (
    KafkaEndpoint,
    KafkaOptions,
    SaslMechanism,
    at_least_one,
    check_topic,
    positive,
)
from pillarbox.transports.kafka.producer import ProducerSession
from pillarbox.transports.kafka.records import Header, Record, failed_headers, incoming_of, without_body
from pillarbox.transports.kafka.starting_offsets import StartAt
from pillarbox.transports.kafka.topics import Topics


class KafkaSource:
    """See `pillarbox.core.source.Source`. Makes no connection until something is received.

    The consumers of a `group` share the partitions of `topic`; `prefetch` limits the messages in flight; `start` is
    where a group begins that has committed nothing. Without `declare`, the topic and those of the group must exist.
    Raises ConfigurationError.
    """

    def __init__(
        self,
        url: str,
        *,
        topic: str,
        group: str,
        prefetch: int = 10,
        start: StartAt = "earliest",
        declare: bool = KafkaOptions.declare,
        partitions: int = KafkaOptions.partitions,
        replication: int = KafkaOptions.replication,
        reply_timeout: Duration = "10s",
        connect_timeout: Duration = KafkaOptions.connect_timeout,
        sasl_mechanism: SaslMechanism = KafkaOptions.sasl_mechanism,
        tls: TlsOptions | None = None,
        client: Mapping[str, Any] | None = None,
    ) -> None:
        options = KafkaOptions(
            declare=declare,
            partitions=partitions,
            replication=replication,
            connect_timeout=connect_timeout,
            sasl_mechanism=sasl_mechanism,
            **asdict(tls or TlsOptions()),
            client=client,
        )
        if not group:
            raise ConfigurationError("a source of Kafka needs a group: consumers of one group share the partitions")
        if start not in ("earliest", "latest"):
            raise ConfigurationError(f"start is {start!r}; it must be 'earliest' or 'latest'")
        self._endpoint = KafkaEndpoint.parse(url, options)
        self._topic = check_topic(topic)
        self._group = group
        self._start: StartAt = start
        self.retry_topic = check_topic(f"{topic}.{group}.retry")
        self.dead_letter_topic = check_topic(f"{topic}.{group}.dlq")
        self._prefetch = at_least_one("prefetch", prefetch)
        self._timeout = positive("reply_timeout", reply_timeout)
        self._topics = Topics(self._endpoint, options, positive("connect_timeout", connect_timeout))
        self._session: KafkaConsumerSession | None = None
        self._producer: ProducerSession | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<KafkaSource {self._topic!r}, group {self._group!r} at {self._endpoint}>"

    async def receive(self) -> KafkaDelivery:
        session = await self._opened()
        return KafkaDelivery(await session.take(), session, self)

    async def connect(self) -> None:
        await self._opened()

    async def aclose(self) -> None:
        """Leave the group; unacknowledged messages are delivered again, to any consumer. Closing twice is fine."""
        self._closed = True
        if (session := self._session) is not None:
            self._session = None
            await session.aclose(self._timeout)
        if (producer := self._producer) is not None:
            self._producer = None
            await producer.aclose(UnavailableError("the source is closed"))

    async def move(
        self, record: Record, session: KafkaConsumerSession, message: Received, *, refusable: bool = True
    ) -> None:
        """Produce with retries until the message is stored in another topic. Raises PermanentError if that refuses it,
        unless it has no smaller form (`refusable`), and UnavailableError once the original is not in flight any more.
        """
        backoff = Backoff(system_rng())
        while True:
            try:
                return await self._put(record)
            except (PermanentError, UnavailableError) as error:
                if refusable and isinstance(error, PermanentError):
                    raise
                if self._closed or not session.is_current(message):
                    raise UnavailableError(
                        f"the message did not reach topic {record.topic!r}: {error}; it is delivered again"
                    ) from error
            await asyncio.sleep(backoff.next())

    @property
    def topic(self) -> str:
        return self._topic

    async def _put(self, record: Record) -> None:
        producer = await self._connected()
        reports = await producer.produce([record])
        for error in reports.refused.values():
            raise error
        for reported in reports.errors.values():
            if reported.code() in REFUSED:
                raise PermanentError(f"Kafka at {self._endpoint} refuses it: {reason_of(reported)}")
            raise producer.failure or UnavailableError(f"Kafka at {self._endpoint}: {reason_of(reported)}")

    async def _connected(self) -> ProducerSession:
        """The producer that moves messages, and asks for topics; a new one if it has ended."""
        self._check_open()
        while self._producer is None or self._producer.failure is not None:
            if (ended := self._producer) is not None:
                self._producer = None
                await ended.aclose(UnavailableError("ended"))
                self._check_open()
            else:
                self._producer = ProducerSession(
                    self._endpoint, window=self._prefetch + 1, timeout=self._timeout, singly=True
                )
        return self._producer

    async def _opened(self) -> KafkaConsumerSession:
        """The member of the group; it joins first, and recovers after an outage. Raises UnavailableError."""
        self._check_open()
        if self._session is not None and self._session.failure is None:
            return self._session
        needed = [self._topic, self.retry_topic, self.dead_letter_topic]
        errors: Mapping[str, UnavailableError] = await (await self._connected()).ask(
            lambda producer: self._topics.missing(producer, needed)
        )
        for error in errors.values():
            raise error
        self._check_open()
        if (ended := self._session) is not None and ended.ended:
            self._session = None
            await ended.aclose(self._timeout)
            self._check_open()
        if self._session is None:
            self._session = KafkaConsumerSession(
                self._endpoint,
                topics=needed[:2],
                retry_topic=self.retry_topic,
                group=self._group,
                start=self._start,
                prefetch=self._prefetch,
                timeout=self._timeout,
            )
        elif self._session.failure is not None:
            self._session.recover()
        return self._session

    def _check_open(self) -> None:
        if self._closed:
            raise UnavailableError("the Kafka source is closed; open a new one")


class KafkaDelivery:
    """See `pillarbox.core.source.Delivery`."""

    def __init__(self, message: Received, session: KafkaConsumerSession, source: KafkaSource) -> None:
        self._message = message
        self._session = session
        self._source = source
        self._incoming: Incoming | None = None

    @property
    def incoming(self) -> Incoming:
        # Not a cached_property, which pyright does not accept as the property of a protocol.
        if self._incoming is None:
            self._incoming = incoming_of(self._message.value, self._message.headers, self._source.topic)
        return self._incoming

    @property
    def quarantined(self) -> bool:
        return self._message.crashes is not None

    @property
    def crashes(self) -> int:
        return self._message.crashes or 0

    async def ack(self) -> None:
        self._session.acknowledge(self._message)

    async def retry(self, *, delay: float, reason: str, counted: bool = True) -> None:
        due = time.time() + delay
        headers = self._failed(reason, counted=counted, due=due)
        try:
            await self._move(self._record(self._source.retry_topic, headers))
        except PermanentError:  # too large with its counts: it waits in memory instead
            self._session.hold(self._message._replace(headers=headers), due)
        else:
            await self.ack()

    async def reject(self, reason: str) -> None:
        record = self._record(self._source.dead_letter_topic, self._failed(reason, counted=True, due=None))
        try:
            await self._move(record)
        except PermanentError:  # the original stays in its topic as long as that keeps messages
            (topic, partition), offset = self._message.assignment.name, self._message.offset
            await self._move(without_body(record, f"{topic}/{partition}/{offset}"), refusable=False)
        self._session.acknowledge(self._message, rejected=True)

    async def _move(self, record: Record, *, refusable: bool = True) -> None:
        await self._source.move(record, self._session, self._message, refusable=refusable)

    def _record(self, topic: str, headers: Sequence[Header]) -> Record:
        return Record(0, topic, self._message.key, self._message.value or b"", headers)

    def _failed(self, reason: str, *, counted: bool, due: float | None) -> list[Header]:
        """The headers after one more failure. Raises UnavailableError if the message is not in flight any more."""
        if not self._session.is_current(self._message):
            self._session.acknowledge(self._message)  # raises
        return failed_headers(
            self._message.headers, self.incoming, topic=self._source.topic, reason=reason, counted=counted, due=due
        )
