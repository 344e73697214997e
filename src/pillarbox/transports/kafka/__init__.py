"""Kafka: an idempotent producer whose batches are confirmed by all replicas, and topics as sources of events.

The names are loaded when they are first used: addresses are values, and need no driver.
"""

from typing import TYPE_CHECKING

from pillarbox.lazy_names import lazy_names

if TYPE_CHECKING:
    from pillarbox.transports.kafka.dead_letters import KafkaDeadLetters
    from pillarbox.transports.kafka.plugin import KafkaAddress
    from pillarbox.transports.kafka.source import KafkaSource
    from pillarbox.transports.kafka.transport import KafkaTransport

__all__ = ["KafkaAddress", "KafkaDeadLetters", "KafkaSource", "KafkaTransport"]

if not TYPE_CHECKING:  # a type checker that saw it would believe every name
    __getattr__ = lazy_names(
        __name__,
        {
            "KafkaAddress": "plugin",
            "KafkaDeadLetters": "dead_letters",
            "KafkaSource": "source",
            "KafkaTransport": "transport",
        },
    )
