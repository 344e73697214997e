"""RabbitMQ: whole lots with publisher confirms, topology from configuration; and queues to work off."""

from pillarbox.transports.rabbitmq.address import RabbitMQAddress
from pillarbox.transports.rabbitmq.dead_letters import RabbitMQDeadLetters
from pillarbox.transports.rabbitmq.source import RabbitMQSource
from pillarbox.transports.rabbitmq.topology import Binding, DeadLetter, Exchange, Queue
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
