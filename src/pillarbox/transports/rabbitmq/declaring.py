"""Declaring the topology, one question at a time, so that a refusal names what it is about.

What exists already and is the same is left as it is; so is a queue that is declared by its name alone and exists as a
consumer or as a relay declares such a one. What else exists and differs is a ConfigurationError that quotes the
broker on the difference; anything else that keeps a thing from being declared is UnavailableError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pillarbox.core.errors import ConfigurationError, PillarboxError, UnavailableError
from pillarbox.transports.rabbitmq.channel import Channel, ChannelRefused
from pillarbox.transports.rabbitmq.endpoint import Endpoint
from pillarbox.transports.rabbitmq.topology import Bind, Declaration, Exchange, Queue, same_queue_otherwise

_DIFFERENT = 406


@dataclass(frozen=True, slots=True)
class Second:
    """A queue that exists, and not as it was declared first."""

    queue: Queue
    refusal: ChannelRefused
    """Of the first."""


async def declare(
    channel: Channel, endpoint: Endpoint, declarations: Sequence[Declaration | Second]
) -> list[Declaration | Second]:
    """What is left for another channel, since the broker closed this one. Raises ConfigurationError,
    UnavailableError."""
    for number, declaration in enumerate(declarations):
        wanted = declaration.queue if isinstance(declaration, Second) else declaration
        try:
            await _declare(channel, wanted)
        except ChannelRefused as refusal:
            if isinstance(declaration, Second):
                # What differs from a queue by its name alone is what the reader needs to know.
                plain = declaration.queue.delivery_limit is None
                raise _explained(wanted, refusal if plain else declaration.refusal, endpoint) from refusal
            other = same_queue_otherwise(wanted) if isinstance(wanted, Queue) and _differs(refusal) else None
            if other is None:
                raise _explained(wanted, refusal, endpoint) from refusal
            return [Second(other, refusal), *declarations[number + 1 :]]
    return []


def _differs(refusal: ChannelRefused) -> bool:
    return refusal.code == _DIFFERENT and "inequivalent arg" in str(refusal)


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


def _explained(declaration: Declaration, refusal: ChannelRefused, endpoint: Endpoint) -> PillarboxError:
    what = _name(declaration)
    match refusal.code:
        case 406:
            return ConfigurationError(
                f"{what} at {endpoint} is not what the configuration says: {refusal}; change the configuration, "
                "delete what exists (its messages go with it), or set declare = false"
            )
        case 403:
            return UnavailableError(
                f"{what} at {endpoint} may not be declared by this user: {refusal}; grant it, or set declare = false"
            )
        case _:
            return UnavailableError(f"{what} at {endpoint} could not be declared: {refusal}")


def _name(declaration: Declaration) -> str:
    match declaration:
        case Exchange(name=name):
            return f"exchange {name!r}"
        case Queue(name=name):
            return f"queue {name!r}"
        case Bind(queue=queue, exchange=exchange, routing_key=routing_key):
            return f"the binding of queue {queue!r} to exchange {exchange!r} by {routing_key!r}"
