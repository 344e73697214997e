"""RabbitMQ: batches with publisher confirms, topology from configuration, and queues as sources of events.

The names are loaded when they are first used: addresses and topology are values, and need no driver.
"""

from typing import TYPE_CHECKING

from pillarbox.lazy_names import lazy_names

if TYPE_CHECKING:
    from pillarbox.transports.rabbitmq.dead_letters import RabbitMQDeadLetters
    from pillarbox.transports.rabbitmq.plugin import RabbitMQAddress
    from pillarbox.transports.rabbitmq.source import RabbitMQSource
    from pillarbox.transports.rabbitmq.topology import Binding, DeadLetterTarget, Exchange, Queue
    from pillarbox.transports.rabbitmq.transport import RabbitMQTransport

__all__ = [
    "Binding",
    "DeadLetterTarget",
    "Exchange",
    "Queue",
    "RabbitMQAddress",
    "RabbitMQDeadLetters",
    "RabbitMQSource",
    "RabbitMQTransport",
]

if not TYPE_CHECKING:  # a type checker that saw it would believe every name
    __getattr__ = lazy_names(
        __name__,
        {
            "Binding": "topology",
            "DeadLetterTarget": "topology",
            "Exchange": "topology",
            "Queue": "topology",
            "RabbitMQAddress": "plugin",
            "RabbitMQDeadLetters": "dead_letters",
            "RabbitMQSource": "source",
            "RabbitMQTransport": "transport",
        },
    )
