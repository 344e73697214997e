"""RabbitMQ: batches with publisher confirms, topology from configuration, and queues as sources of events.

The names are loaded when they are first used: addresses and topology are values, and need no driver.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pillarbox.transports.rabbitmq.dead_letters import RabbitMQDeadLetters
    from pillarbox.transports.rabbitmq.source import RabbitMQSource
    from pillarbox.transports.rabbitmq.topology import Binding, DeadLetter, Exchange, Queue, RabbitMQAddress
    from pillarbox.transports.rabbitmq.transport import RabbitMQTransport

__all__ = [
    "Binding",
    "DeadLetter",
    "Exchange",
    "Queue",
    "RabbitMQAddress",
    "RabbitMQDeadLetters",
    "RabbitMQSource",
    "RabbitMQTransport",
]

_HOME_OF = {
    "Binding": "topology",
    "DeadLetter": "topology",
    "Exchange": "topology",
    "Queue": "topology",
    "RabbitMQAddress": "topology",
    "RabbitMQDeadLetters": "dead_letters",
    "RabbitMQSource": "source",
    "RabbitMQTransport": "transport",
}


if not TYPE_CHECKING:  # a type checker that saw it would believe every name

    def __getattr__(name: str) -> object:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value
