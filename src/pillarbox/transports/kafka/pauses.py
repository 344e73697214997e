"""Which partitions of a consumer are paused: those whose messages would have no room, or must wait.

To pause a partition discards what was fetched of it, so a short lack of room pauses none.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from pillarbox.transports.kafka.driver import Consumer, KafkaException, TopicPartition
from pillarbox.transports.kafka.messages import PartitionMessages
from pillarbox.transports.kafka.offsets import PartitionName

_BUSY = 1.0
"""Seconds without room for another message after which partitions are paused."""
_MAX_HELD = 1000
_MAX_HELD_BYTES = 16 * 1024 * 1024
"""What is held in memory until it is due; the rest of the retry topic waits at the broker."""


class Pauses:
    """The paused partitions of one consumer."""

    def __init__(self, consumer: Consumer, retry_topic: str) -> None:
        self._consumer = consumer
        self._retry_topic = retry_topic
        self._paused: set[PartitionName] = set()
        self._full_since: float | None = None

    def __bool__(self) -> bool:
        return bool(self._paused)

    def are_long(self, now: float) -> bool:
        """Whether there has been no room for so long that partitions are paused."""
        return self._full_since is not None and now - self._full_since >= _BUSY

    def wanted(self, messages: PartitionMessages, *, stopped: bool, at_once: bool, now: float) -> set[PartitionName]:
        """The partitions to pause; `stopped`: there is no room, `at_once`: and none may be filled meanwhile."""
        self._full_since = (self._full_since or now) if stopped else None
        names = set(messages.assignments)
        self._paused &= names
        if self.are_long(now) or (stopped and at_once) or messages.in_quarantine:
            return names
        full = messages.held >= _MAX_HELD or messages.held_bytes >= _MAX_HELD_BYTES
        some = messages.held > _MAX_HELD // 2 or messages.held_bytes > _MAX_HELD_BYTES // 2
        retries = {name for name in names if name[0] == self._retry_topic}
        return messages.unmarked | (retries if full or (some and retries & self._paused) else set())

    def apply(self, wanted: set[PartitionName]) -> None:
        """Pause these partitions, and resume the others."""
        pausing, resuming = wanted - self._paused, self._paused - wanted
        self._paused |= pausing  # also if the call fails, which may have paused some
        with suppress(KafkaException):
            if pausing:
                self._consumer.pause([TopicPartition(*name) for name in pausing])
            if resuming:
                self._consumer.resume([TopicPartition(*name) for name in resuming])
            self._paused -= resuming

    def end(self, places: Sequence[TopicPartition]) -> None:
        """Resume partitions that are assigned: librdkafka keeps the pause of one that was lost."""
        self._consumer.resume(list(places))
        self._paused -= {(one.topic, one.partition) for one in places}
