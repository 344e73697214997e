"""What arrived in a topic, and messages put into one: with plain clients, without the code under test."""

import contextlib
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

_BOUND = 60.0


def new_topic() -> str:
    return f"test-{uuid.uuid4().hex[:12]}"


def read_all(bootstrap: str, topic: str, **settings: Any) -> list[Message]:
    """Every message that the topic has now, partition by partition, in order."""
    found: list[Message] = []
    with _consumer(bootstrap, settings) as consumer:
        partitions = consumer.list_topics(topic, timeout=_BOUND).topics[topic].partitions
        ends = {one: _end(consumer, topic, one) for one in partitions}
        starts = [TopicPartition(topic, one, low) for one, (low, high) in ends.items() if high > low]
        consumer.assign(starts)
        left = {one.partition for one in starts}
        deadline = time.monotonic() + _BOUND
        while left and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is None or message.error():
                continue
            found.append(message)
            partition, offset = message.partition() or 0, message.offset() or 0
            if offset + 1 >= ends[partition][1]:
                left.discard(partition)
    return sorted(found, key=lambda one: (one.partition() or 0, one.offset() or 0))


def stored(bootstrap: str, topic: str) -> int:
    """How many messages were stored in the first partition, whether or not the topic still has them."""
    with _consumer(bootstrap, {}) as consumer:
        return _end(consumer, topic, 0)[1]


def ids(messages: Iterable[Message]) -> list[str]:
    return [text(one, "eventId") for one in messages]


def text(message: Message, name: str) -> str:
    """A header; KeyError if the message does not have it."""
    value = dict(headers(message))[name]
    return (value or b"").decode()


def headers(message: Message) -> Sequence[tuple[str, bytes | None]]:
    found: Any = message.headers() or []
    return list(found)


def put(
    bootstrap: str,
    topic: str,
    messages: Iterable[tuple[bytes, Sequence[tuple[str, bytes]]]],
    *,
    key: bytes = b"key",
    keys: Iterable[bytes] | None = None,
    **settings: Any,
) -> None:
    """Write messages of one key, or each with its own, in order, and wait until they are stored."""
    # Not idempotent: to ask for a producer id takes half a second. With one request in flight the order is kept.
    client: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 0, "max.in.flight": 1}
    producer = Producer({**client, **settings})
    for (value, given), own in zip(messages, keys or repeat(key), strict=False):
        producer.produce(topic, value, own, headers=list(given))
    assert producer.flush(_BOUND) == 0


@contextlib.contextmanager
def _consumer(bootstrap: str, settings: dict[str, Any]) -> Iterator[Consumer]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, "log_level": 0, **settings}
    )
    try:
        yield consumer
    finally:
        consumer.close()


def _end(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_BOUND)
