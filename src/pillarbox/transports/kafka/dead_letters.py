"""The dead letters of consumer groups on Kafka: their number and their messages, read only.

Each group has its dead letters in a topic of its own. A queue is named by that topic (`orders.billing.dlq`), or, for
all groups of a topic, as on other brokers: `orders.dlq`. A consumer with fixed partitions reads them: it joins no
group and commits nothing. A log keeps every message until its retention ends, so none can be moved.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, NoReturn, TypeVar

from pillarbox.admin.broker_dead_letters import BrokerDeadLetter, dead_letter_queue, legible
from pillarbox.cloudevents import id_and_type
from pillarbox.core.clock import Duration, parse_timestamp
from pillarbox.core.errors import RejectedError, UnavailableError
from pillarbox.settings.tls import TlsOptions
from pillarbox.transports.kafka.driver import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
    error_of,
    reason_of,
)
from pillarbox.transports.kafka.plugin import (
    KafkaEndpoint,
    KafkaOptions,
    SaslMechanism,
    at_least_one,
    is_topic,
    positive,
)
from pillarbox.transports.kafka.records import LAST_FAILED_AT, QUEUE, REASON, headers_of, incoming_of

T = TypeVar("T")

_SUFFIX = dead_letter_queue("")
_READER = "pillarbox-dead-letters"
"""The group that librdkafka demands; nothing joins it."""
_POLL = 0.5
_END = KafkaError._PARTITION_EOF
_DENIED = frozenset((KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED))


class KafkaDeadLetters:
    """See `pillarbox.admin.broker_dead_letters.BrokerDeadLetters`. Connects on first use, and creates nothing.

    Raises ConfigurationError.
    """

    def __init__(
        self,
        url: str,
        *,
        reply_timeout: Duration = "10s",
        connect_timeout: Duration = KafkaOptions.connect_timeout,
        sasl_mechanism: SaslMechanism = KafkaOptions.sasl_mechanism,
        tls: TlsOptions | None = None,
        client: Mapping[str, Any] | None = None,
    ) -> None:
        options = KafkaOptions(
            connect_timeout=connect_timeout,
            sasl_mechanism=sasl_mechanism,
            **asdict(tls or TlsOptions()),
            client=client,
        )
        self._endpoint = KafkaEndpoint.parse(url, options)
        self._connect_timeout = positive("connect_timeout", connect_timeout)
        self._timeout = positive("reply_timeout", reply_timeout)
        self._consumer: Consumer | None = None
        self._lock = asyncio.Lock()
        self._last_error = ""

    def __repr__(self) -> str:
        return f"<KafkaDeadLetters at {self._endpoint}>"

    async def depth(self, queue: str) -> int | None:
        """How many messages its topics keep; those that compaction or a transaction left out count, too."""
        ranges = await self._ask(partial(self._ranges, queue))
        return None if ranges is None else sum(high - low for low, high in ranges.values())

    @asynccontextmanager
    async def receive(
        self, queue: str, *, limit: int, prefetch: int
    ) -> AsyncIterator[AsyncIterator[KafkaReceivedDeadLetter]]:
        yield self._received(queue, min(limit, at_least_one("prefetch", prefetch)))

    async def aclose(self) -> None:
        if (consumer := self._consumer) is not None:
            self._consumer = None
            await asyncio.to_thread(consumer.close)

    async def _received(self, queue: str, limit: int) -> AsyncIterator[KafkaReceivedDeadLetter]:
        ranges = await self._ask(partial(self._ranges, queue)) or {}
        for (topic, partition), (low, high) in ranges.items():
            if limit <= 0:
                return
            found = await self._ask(partial(self._read, TopicPartition(topic, partition, low), high, limit))
            limit -= len(found)
            for message in found:
                yield KafkaReceivedDeadLetter(message, topic)

    def _ranges(self, queue: str, consumer: Consumer) -> dict[tuple[str, int], tuple[int, int]] | None:
        """Topic and partition → its first offset and the one behind its last; None: there is no such topic."""
        every = consumer.list_topics(timeout=self._connect_timeout).topics
        work = queue.removesuffix(_SUFFIX) if queue.endswith(_SUFFIX) else None
        topics = [
            name
            for name in sorted(every)
            if name == queue or (work is not None and name.endswith(_SUFFIX) and _is_of_group(name, work))
        ]
        if not topics or not is_topic(queue):
            return None
        return {
            (topic, partition): consumer.get_watermark_offsets(TopicPartition(topic, partition), self._timeout)
            for topic in topics
            for partition in sorted(every[topic].partitions)
        }

    def _read(self, start: TopicPartition, end: int, limit: int, consumer: Consumer) -> list[Message]:
        """The messages of a partition from an offset on, as far as it reached when it was asked for its end."""
        found: list[Message] = []
        if start.offset >= end:
            return found
        waited, position = 0.0, start.offset
        consumer.assign([start])
        try:
            while position < end and len(found) < limit:
                message = consumer.poll(_POLL)
                if message is None:
                    waited += _POLL
                    if waited >= self._timeout:
                        raise UnavailableError(f"{self._where(start.topic)} does not respond{self._why()}")
                    continue
                if (error := message.error()) is not None:
                    if error.code() == _END:
                        return found
                    raise KafkaException(error)
                waited, position = 0.0, (message.offset() or 0) + 1
                if position <= end:
                    found.append(message)
        finally:
            consumer.unassign()
        return found

    async def _ask(self, question: Callable[[Consumer], T]) -> T:
        async with self._lock:
            try:
                return await asyncio.to_thread(self._asked, question)
            except KafkaException as raised:
                error = error_of(raised)
                if error.code() in _DENIED:
                    raise RejectedError(f"Kafka at {self._endpoint} denies reading: {reason_of(error)}") from None
                reason = self._last_error or reason_of(error)
                raise UnavailableError(f"Kafka at {self._endpoint} did not respond: {reason}") from None

    def _asked(self, question: Callable[[Consumer], T]) -> T:
        if self._consumer is None:
            own: dict[str, Any] = {
                "group.id": _READER,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "error_cb": self._erred,
            }
            self._consumer = Consumer({**self._endpoint.settings(), **own})
        return question(self._consumer)

    def _erred(self, error: KafkaError) -> None:
        self._last_error = reason_of(error)

    def _where(self, topic: str) -> str:
        return f"topic {topic!r} at {self._endpoint}"

    def _why(self) -> str:
        return f": {self._last_error}" if self._last_error else ""


class KafkaReceivedDeadLetter:
    """See `pillarbox.admin.broker_dead_letters.ReceivedDeadLetter`."""

    def __init__(self, message: Message, topic: str) -> None:
        self.dead_letter = dead_letter_of(message, topic)

    async def move(self, queue: str) -> NoReturn:
        """Raises RejectedError."""
        raise RejectedError(
            f"a dead letter in topic {self.dead_letter.queue!r} cannot be moved to {queue!r}: Kafka deletes no single "
            "message; replay the event, or copy the message with Kafka's tools"
        )


def _is_of_group(name: str, work: str) -> bool:
    """Whether it is the dead-letter topic of a group that consumes a topic: `TOPIC.GROUP.dlq`."""
    return name.startswith(f"{work}.") and len(name) > len(work) + 1 + len(_SUFFIX)


def dead_letter_of(message: Message, topic: str) -> BrokerDeadLetter:
    """A dead letter from a message. Raises nothing, whatever a producer wrote."""
    body: Any = message.value()
    incoming = incoming_of(body, headers_of(message), topic)
    event_id, event_type = id_and_type(incoming)
    return BrokerDeadLetter(
        queue=topic,
        event_id=legible(event_id),
        event_type=legible(event_type),
        reason=legible(incoming.headers.get(REASON)),
        attempts=incoming.attempts,
        dead_lettered_at=parse_timestamp(incoming.headers.get(LAST_FAILED_AT, "")),
        original_queue=legible(incoming.headers.get(QUEUE)) or None,
        delivery_count=0,
        content_type=legible(incoming.content_type),
        size=len(incoming.body),
        body=incoming.body,
    )
