"""Partitions that confirm nothing while the cluster responds: no broker leads them, or too few replicas are in sync.

Nothing of a producer times out by itself: a message to such a partition would end, every `send_timeout`, the producer
that all messages share. Once a partition has been silent for that long, its messages are not produced but deferred, and
once per `send_timeout` one batch sends them over a producer of their own. Keys keep their order: a key has one
partition, and all its messages in a batch are produced together or deferred together.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from pillarbox.core.errors import NackedError, UnavailableError
from pillarbox.core.transport import Outgoing
from pillarbox.transports.kafka.plugin import KafkaEndpoint
from pillarbox.transports.kafka.producer import Partition
from pillarbox.transports.kafka.records import Record
from pillarbox.transports.kafka.results import has_only_topic
from pillarbox.transports.kafka.topics import Topics

Silent = list[tuple[Record, Partition]]

_SEED, _FACTOR, _SHIFT, _MASK = 0x9747B28C, 0x5BD1E995, 24, 0xFFFFFFFF


class SilentPartitions:
    """The silent partitions of a cluster; empty as long as everything is well."""

    def __init__(self, endpoint: KafkaEndpoint, topics: Topics, timeout: float) -> None:
        self._endpoint = endpoint
        self._topics = topics
        self._timeout = timeout
        self._found: set[Partition] = set()
        self._next_check = 0.0
        self._checking = False

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, partition: Partition) -> None:
        """It confirmed nothing in time, and others did meanwhile."""
        self._found.add(partition)
        self._next_check = time.monotonic() + self._timeout

    def add_unclear(self, partitions: Iterable[Partition]) -> None:
        """These confirmed nothing in time, and nothing is known of others: the next send checks again. If no partition
        of a topic is left, it is the cluster that is silent, and each send finds out anew."""
        self._next_check = 0.0
        for partition in set(partitions):
            self._found.add(partition)
            if self._is_whole(partition[0]):
                self._found = {one for one in self._found if one[0] != partition[0]}

    def responds(self, partition: Partition) -> None:
        """It confirmed or refused a message."""
        self._found.discard(partition)

    def error(self, partition: Partition, outgoing: Outgoing) -> UnavailableError:
        """The result of a message to a silent partition. It concerns that message alone, unless its destination has no
        other partition."""
        topic, number = partition
        reason = (
            f"partition {number} of topic {topic!r} at {self._endpoint} confirmed nothing for {self._timeout:g} s; "
            "start its leader, or enough replicas"
        )
        if self._is_whole(topic) and has_only_topic(outgoing):
            return UnavailableError(reason)
        return NackedError(reason, alone=True)

    def split(self, records: Sequence[Record]) -> tuple[list[Record], Silent]:
        """The messages to other partitions, and those to silent ones. A message without a key is for any other one; the
        first of a topic is to find out whether the silent ones respond, when it is time to check."""
        others: list[Record] = []
        silent: Silent = []
        shares: dict[str, tuple[list[int], list[int]]] = {}
        due = set(self._topics.partitions) if self._is_due() else set[str]()
        for record in records:
            topic = record.topic
            if topic not in shares:
                shares[topic] = self._shares(topic)
            found, left = shares[topic]
            if not found:
                others.append(record)
            elif (key := record.key) is not None:
                number = partition_of(key if isinstance(key, bytes) else key.encode(), len(found) + len(left))
                if number in found:
                    silent.append((record, (topic, number)))
                else:
                    others.append(record)
            elif not left or topic in due:
                due.discard(topic)
                number = random.choice(found)  # noqa: S311 - no secret
                silent.append((record._replace(partition=number), (topic, number)))
            else:
                others.append(record._replace(partition=random.choice(left)))  # noqa: S311 - no secret
        return others, silent

    @contextmanager
    def checking(self) -> Iterator[bool]:
        """Whether to send to the silent partitions now; no other send does meanwhile."""
        if not self._is_due():
            yield False
            return
        self._checking = True
        try:
            yield True
        finally:
            self._checking = False
            self._next_check = time.monotonic() + self._timeout

    def _is_due(self) -> bool:
        return not self._checking and time.monotonic() >= self._next_check

    def _shares(self, topic: str) -> tuple[list[int], list[int]]:
        """The numbers of its silent partitions, and of its others."""
        numbers = range(self._topics.partitions.get(topic, 0))
        found = [number for number in numbers if (topic, number) in self._found]
        return found, [number for number in numbers if number not in found]

    def _is_whole(self, topic: str) -> bool:
        return not self._shares(topic)[1]


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key, as librdkafka's `murmur2` and Java's default partitioner choose it."""
    whole = len(key) - len(key) % 4
    hashed = _SEED ^ len(key)
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * _FACTOR & _MASK
        word = (word ^ word >> _SHIFT) * _FACTOR & _MASK
        hashed = (hashed * _FACTOR & _MASK) ^ word
    if rest := key[whole:]:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * _FACTOR & _MASK
    hashed = (hashed ^ hashed >> 13) * _FACTOR & _MASK
    return ((hashed ^ hashed >> 15) & 0x7FFFFFFF) % partitions
