"""Declarations over a channel, and what happens if something exists already.

What exists with the same arguments stays as it is. A queue that exists with another type or other arguments is used as
it is, because another application may have declared it first. Three differences stay errors, because events would be
lost or stuck: a queue that is not durable, one that the broker deletes with its last consumer, and a queue of a
consumer for retries or quarantine.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeGuard

from pillarbox.transports.rabbitmq.confirms import ChannelRefused
from pillarbox.transports.rabbitmq.driver import Channel
from pillarbox.transports.rabbitmq.topology import (
    Declaration,
    ExactQueue,
    Exchange,
    Queue,
    QueueBinding,
    alternative_queue,
)

_log = logging.getLogger("pillarbox.rabbitmq")

OnExisting = Callable[[Queue, ChannelRefused], None]
"""What is called with a queue that exists with other arguments, and the broker's refusal to declare it."""


class SecondDeclaration(NamedTuple):
    """A second declaration of a queue that exists with other arguments: `refusal` is that of the first."""

    queue: Queue
    refusal: ChannelRefused


class ExistingQueues:
    """Warns of each queue that exists with other arguments: once, however often it is declared again."""

    def __init__(self, where: object) -> None:
        self._where = where
        self._warned: set[str] = set()

    def __call__(self, queue: Queue, refusal: ChannelRefused) -> None:
        if queue.name in self._warned:
            return
        self._warned.add(queue.name)
        _log.warning(
            "%s at %s exists with other arguments and is used as it is: %s; `pillarbox doctor` shows every difference",
            queue.label,
            self._where,
            refusal,
        )


async def declare(
    channel: Channel, declarations: Sequence[Declaration | SecondDeclaration], on_existing: OnExisting
) -> list[Declaration | SecondDeclaration]:
    """Declare one after another; returns what is left for another channel if the broker closed this one.

    A queue that is declared by its name alone may exist as a relay or a consumer declares it. Any other difference of a
    queue is passed to `on_existing`. Raises ConfigurationError with the broker's words if an exchange differs, or a
    queue in a way that would lose events, and UnavailableError for every other failure.
    """
    for number, declaration in enumerate(declarations):
        wanted = declaration.queue if isinstance(declaration, SecondDeclaration) else declaration
        try:
            await _declare(channel, wanted)
        except ChannelRefused as refusal:
            left, shown = declarations[number + 1 :], refusal
            if isinstance(declaration, SecondDeclaration):
                # The reader needs the difference from a queue that is declared by its name alone.
                shown = refusal if declaration.queue.delivery_limit is None else declaration.refusal
            elif _may_be_other(declaration) and refusal.differs and (other := alternative_queue(declaration)):
                return [SecondDeclaration(other, refusal), *left]
            if not (_may_be_other(wanted) and shown.can_be_used):
                raise shown.declaration_error(f"{wanted.label} at {channel.wire.endpoint}") from refusal
            on_existing(wanted, shown)
            return list(left)
    return []


def _may_be_other(declaration: Declaration) -> TypeGuard[Queue]:
    return isinstance(declaration, Queue) and not isinstance(declaration, ExactQueue)


async def _declare(channel: Channel, declaration: Declaration) -> None:
    raw = channel.raw
    match declaration:
        case Exchange(name=name, type=kind, durable=durable):
            await channel.call(raw.exchange_declare, exchange=name, exchange_type=kind, durable=durable)
        case Queue(name=name):
            await channel.call(raw.queue_declare, queue=name, durable=True, arguments=declaration.all_arguments())
        case QueueBinding(queue=queue, exchange=exchange, routing_key=routing_key):
            await channel.call(raw.queue_bind, queue=queue, exchange=exchange, routing_key=routing_key)
