"""Deliveries as they come over one channel, and their acks: from the work queue up to the prefetch, from the suspects
one at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from pillarbox.core.errors import Unavailable
from pillarbox.transports.rabbitmq.channel import Channel, ChannelRefused
from pillarbox.transports.rabbitmq.driver import (
    Basic,
    BasicProperties,
    ChannelWrongStateError,
    ConnectionWrongStateError,
    Method,
    RawChannel,
)
from pillarbox.transports.rabbitmq.link import Link
from pillarbox.transports.rabbitmq.place import Place
from pillarbox.transports.rabbitmq.source.queues import Queues


class Arrival(NamedTuple):
    """A message that came, with the tag by which it is acked on the same channel."""

    tag: int
    queue: str
    redelivered: bool
    properties: BasicProperties
    body: bytes


class Intake:
    """Opened once. What came and was not acked when it ends comes again."""

    def __init__(self, place: Place, link: Link) -> None:
        self._channel = Channel(place)
        self._link = link
        self._arrived: deque[Arrival] = deque()
        self._waited_for = False

    @property
    def alive(self) -> bool:
        return self._channel.failure is None

    async def open(self, queues: Queues, prefetch: int) -> None:
        """Raises ChannelRefused, Unavailable."""
        channel = self._channel
        await self._link.adopt(channel)
        channel.raw.add_on_cancel_callback(self._cancelled)
        for queue, most in ((queues.work.name, prefetch), (queues.suspects, 1)):
            await channel.call(channel.raw.basic_qos, prefetch_count=most)
            await channel.call(channel.raw.basic_consume, queue=queue, on_message_callback=self._came_from(queue))

    async def next(self) -> Arrival:
        """The next that came. Raises Unavailable once the channel has ended: whatever had come over it comes again."""
        try:
            while self.alive and not self._arrived:
                self._waited_for = True
                await self._channel.answer()
            _ = self._channel.raw
        except ChannelRefused as refusal:
            raise Unavailable(f"RabbitMQ closed the channel: {refusal}; it is tried again") from refusal
        finally:
            self._waited_for = False
        return self._arrived.popleft()

    def ack(self, tag: int) -> None:
        """Raises Unavailable if the channel has ended."""
        try:
            self._channel.raw.basic_ack(tag)
        except (ChannelRefused, ChannelWrongStateError, ConnectionWrongStateError) as error:
            raise Unavailable(f"the message can no longer be acked: {error}; it comes again") from error

    def end(self, reason: Unavailable) -> None:
        """Cut its connection."""
        self._link.let_go(reason)

    def _came_from(self, queue: str) -> Callable[[RawChannel, Basic.Deliver, BasicProperties, bytes], None]:
        def came(_: RawChannel, method: Basic.Deliver, properties: BasicProperties, body: bytes) -> None:
            tag, redelivered = int(method.delivery_tag or 0), bool(method.redelivered)
            self._arrived.append(Arrival(tag, queue, redelivered, properties, body))
            if self._waited_for:
                self._channel.answered()

        return came

    def _cancelled(self, _: Method[Basic.Cancel]) -> None:
        self._channel.fail(
            Unavailable("RabbitMQ ended the consumer, as it does when a queue is deleted; it is tried again")
        )
