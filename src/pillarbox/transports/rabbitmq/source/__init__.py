"""RabbitMQ as a source: a queue to work off, and the queues around it in which messages wait, are isolated, or end.

queues.py      what they are called and how they are declared
intake.py      deliveries as they come, and their acks
mover.py       from one queue to another: confirmed there before it is acked here
notes.py       what is written on a message that is moved
letters.py     … and how it reads on one that was given up
delivery.py    one message in hand
source.py      all of it together
"""

from pillarbox.transports.rabbitmq.source.source import RabbitMQSource

__all__ = ["RabbitMQSource"]
