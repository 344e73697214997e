"""confluent-kafka, and what its error codes mean for a message.

`retriable()` of its errors is false for everything that a delivery report carries, so codes decide. Retriable errors
never reach a delivery report: librdkafka retries them itself, in order.
"""

from __future__ import annotations

from typing import Any

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient as _AdminClient
    from confluent_kafka.admin._config import ConfigResource
    from confluent_kafka.cimpl import NewTopic
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('Kafka needs confluent-kafka: pip install "pillarbox[kafka]"') from missing

__all__ = [
    "ALL_BROKERS_DOWN",
    "BEHIND",
    "COLLATERAL",
    "FORBIDDEN",
    "REFUSED",
    "TIMED_OUT",
    "TOO_LARGE",
    "UNKNOWN_TOPIC",
    "AdminClient",
    "ConfigResource",
    "Consumer",
    "KafkaError",
    "KafkaException",
    "Message",
    "NewTopic",
    "Producer",
    "TopicPartition",
    "error_of",
    "reason_of",
]

AdminClient: Any = _AdminClient
"""Its types are incomplete."""
TOO_LARGE = KafkaError.MSG_SIZE_TOO_LARGE
REFUSED = frozenset((TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError.INVALID_MSG))
"""The broker refuses a whole request with these, because of one message in it."""
FORBIDDEN = frozenset((KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED))
UNKNOWN_TOPIC = frozenset((KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION))
COLLATERAL = frozenset(
    (
        KafkaError._FATAL,
        KafkaError._GAPLESS_GUARANTEE,
        KafkaError._PURGE_QUEUE,
        KafkaError._PURGE_INFLIGHT,
    )
)
"""Not the message failed but its producer ended."""
TIMED_OUT = KafkaError._MSG_TIMED_OUT
BEHIND = frozenset(
    (
        KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.UNKNOWN_PRODUCER_ID,
    )
)
"""The broker has lost the state of the producer; or it refused a request and refuses those behind it, too."""
ALL_BROKERS_DOWN = KafkaError._ALL_BROKERS_DOWN


def error_of(raised: KafkaException) -> KafkaError:
    """The error in an exception."""
    found: Any = raised.args[0]
    return found if isinstance(found, KafkaError) else KafkaError(KafkaError.UNKNOWN, str(found))


def reason_of(error: KafkaError) -> str:
    """The text of an error with its code."""
    return f"{error.str()} ({error.code()})"
