"""Where a consumer begins to read the partitions that it is assigned."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pillarbox.transports.kafka.crashes import CrashCounts
from pillarbox.transports.kafka.driver import Consumer, KafkaException, TopicPartition
from pillarbox.transports.kafka.offsets import Commit, PartitionName

StartAt = Literal["earliest", "latest"]


class Start(NamedTuple):
    """Where one partition begins."""

    place: TopicPartition
    committed: Commit | None
    """What the group has committed."""
    counts: CrashCounts | None

    @property
    def name(self) -> PartitionName:
        return self.place.topic, self.place.partition

    @property
    def offset(self) -> int | None:
        """None: with the first message of the partition."""
        return self.place.offset if self.place.offset >= 0 else None


def read_starts(
    consumer: Consumer, partitions: list[TopicPartition], *, start: StartAt, retry_topic: str, timeout: float
) -> list[Start]:
    """Ask Kafka where partitions begin. Raises KafkaException.

    In a group that begins at the end of its topic, that offset is set and committed: if not, a message that arrives
    before the first commit would be skipped if the group rebalances. Messages to retry are the group's own: their topic
    is read from its beginning.
    """
    starts: list[Start] = []
    for place in consumer.committed(partitions, timeout=timeout):
        if place.error is not None:
            raise KafkaException(place.error)
        counts = CrashCounts.parse(place.metadata) if place.offset >= 0 else None
        starts.append(Start(place, None if counts is None else Commit(place.offset, str(counts)), counts))
        if counts is None and start == "latest":
            low, high = consumer.get_watermark_offsets(place, timeout=timeout)
            place.offset = low if place.topic == retry_topic else high
    return starts
