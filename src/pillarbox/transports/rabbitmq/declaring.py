"""Declaring the topology, one question at a time, so that a refusal names what it is about.

What exists already and is the same is left as it is. What exists and differs is a ConfigurationError that quotes the
broker on the difference; anything else that keeps a thing from being declared is Unavailable.
"""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.core.errors import ConfigurationError, PillarboxError, Unavailable
from pillarbox.transports.rabbitmq.channel import Channel, ChannelRefused
from pillarbox.transports.rabbitmq.place import Place
from pillarbox.transports.rabbitmq.topology import Bind, Declaration, Exchange, Queue


async def declare(channel: Channel, place: Place, declarations: Sequence[Declaration]) -> None:
    """Raises ConfigurationError, Unavailable."""
    for declaration in declarations:
        try:
            await _declare(channel, declaration)
        except ChannelRefused as refusal:
            raise _explained(declaration, refusal, place) from refusal


async def _declare(channel: Channel, declaration: Declaration) -> None:
    match declaration:
        case Exchange(name=name, type=kind, durable=durable):
            await channel.call(channel.raw.exchange_declare, exchange=name, exchange_type=kind, durable=durable)
        case Queue(name=name):
            await channel.call(
                channel.raw.queue_declare, queue=name, durable=True, arguments=declaration.all_arguments()
            )
        case Bind(queue=queue, exchange=exchange, routing_key=routing_key):
            await channel.call(channel.raw.queue_bind, queue=queue, exchange=exchange, routing_key=routing_key)


def _explained(declaration: Declaration, refusal: ChannelRefused, place: Place) -> PillarboxError:
    what = _name(declaration)
    match refusal.code:
        case 406:
            return ConfigurationError(
                f"{what} at {place} is not what the configuration says: {refusal}; change the configuration, "
                "delete what exists (its messages go with it), or set declare = false"
            )
        case 403:
            return Unavailable(
                f"{what} at {place} may not be declared by this user: {refusal}; grant it, or set declare = false"
            )
        case _:
            return Unavailable(f"{what} at {place} could not be declared: {refusal}")


def _name(declaration: Declaration) -> str:
    match declaration:
        case Exchange(name=name):
            return f"exchange {name!r}"
        case Queue(name=name):
            return f"queue {name!r}"
        case Bind(queue=queue, exchange=exchange, routing_key=routing_key):
            return f"the binding of queue {queue!r} to exchange {exchange!r} by {routing_key!r}"
