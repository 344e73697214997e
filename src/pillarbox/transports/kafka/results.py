"""The results of a batch, one per position, and the messages that have none yet."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.core.errors import NackedError, PermanentError, SendError, UnavailableError
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.transports.kafka.plugin import KafkaAddress
from pillarbox.transports.kafka.records import Record, record_of

Results = list[SendResult]


def records_of(batch: Sequence[Outgoing], results: Results) -> list[Record]:
    """The messages with their topics; sets the results of those that cannot be sent."""
    records: list[Record] = []
    for position, outgoing in enumerate(batch):
        address = outgoing[1]
        if not isinstance(address, KafkaAddress):
            results[position] = UnavailableError(f"{address!r} is not an address of Kafka; use KafkaTransport.to(…)")
            continue
        try:
            topic = address.fixed_topic or address.topic_for(outgoing.message)
            records.append(record_of(position, topic, outgoing))
        except PermanentError as refusal:
            results[position] = refusal
    return records


def of_topic(outgoing: Outgoing, error: UnavailableError) -> UnavailableError:
    """The error of a message whose topic cannot be used. If the destination has one topic for each of several events,
    the others are available: then it is an error of this message, which is deferred by itself."""
    return error if has_only_topic(outgoing) else NackedError(str(error))


def has_only_topic(outgoing: Outgoing) -> bool:
    """Whether the topic of its destination does not depend on the event."""
    address = outgoing.address
    return isinstance(address, KafkaAddress) and address.fixed_topic is not None


def without_keys_of(failed: Sequence[Record], records: Sequence[Record], results: Results) -> list[Record]:
    """The messages of other keys; the others share the result of what they must not overtake."""
    errors: dict[tuple[str, str | bytes | None], SendResult] = {
        (record.topic, record.key): results[record.position] for record in failed if record.key is not None
    }
    for record in records:
        if (record.topic, record.key) in errors:
            results[record.position] = errors[record.topic, record.key]
    return [record for record in records if (record.topic, record.key) not in errors]


def fail(records: Sequence[Record], error: SendError, results: Results) -> None:
    for record in records:
        results[record.position] = error
