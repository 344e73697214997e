"""Deliveries as they come over one channel, and their acks: from each queue up to a number of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pillarbox.core.errors import UnavailableError
from pillarbox.transports.rabbitmq.channel import Channel, ChannelRefused
from pillarbox.transports.rabbitmq.connection import Connection
from pillarbox.transports.rabbitmq.driver import Basic, Method, RawChannel
from pillarbox.transports.rabbitmq.endpoint import Endpoint
from pillarbox.transports.rabbitmq.received import Received


class Arrival(NamedTuple):
    """A message that came, with the tag by which it is acked on the same channel."""

    tag: int
    queue: str
    redelivered: bool
    properties: Received
    body: bytes


class Intake:
    """Opened once. What came and was not acked when it ends comes again."""

    def __init__(self, endpoint: Endpoint, link: Connection) -> None:
        self._channel = Channel(endpoint)
        self._link = link
        self._arrived: deque[Arrival] = deque()
        self._waited_for = False
        self.in_hand = 0
        """How many came and were not acked."""
        self.latest: Arrival | None = None
        self.frame_max = 0
        """Bytes of the longest frame, once it is open."""

    @property
    def alive(self) -> bool:
        return self._channel.failure is None

    async def open(self, prefetch: Mapping[str, int]) -> None:
        """Take in from these queues, so many from each at once. Raises ChannelRefused, UnavailableError."""
        self.frame_max = self._link.wire.params.frame_max
        await self._link.adopt(self._channel)
        self._channel.raw.add_on_cancel_callback(self._cancelled)
        for queue, most in prefetch.items():
            await self.take_more(queue, most)

    async def take_more(self, queue: str, most: int) -> None:
        """Take in so many more at once from a queue. Raises ChannelRefused, UnavailableError."""
        channel = self._channel
        await channel.call(channel.raw.basic_qos, prefetch_count=most)
        await channel.call(
            channel.raw.basic_consume,
            queue=queue,
            on_message_callback=self._came_from(queue),
            # When the channel ends, a quorum queue takes back what was not acked in the order of these names.
            consumer_tag=f"pillarbox-{len(channel.raw.consumer_tags):04}",
        )

    async def next(self) -> Arrival:
        """The next that came. Raises UnavailableError once the channel has ended: whatever had come over it comes
        again."""
        try:
            while self.alive and not self._arrived:
                self._waited_for = True
                await self._channel.answer()
            _ = self._channel.raw
        except ChannelRefused as refusal:
            raise UnavailableError(f"RabbitMQ closed the channel: {refusal}") from refusal
        finally:
            self._waited_for = False
        return self._arrived.popleft()

    async def catch_up(self) -> bool:
        """Wait for whatever the broker has handed out before now; whether anything lies here. Raises UnavailableError.

        An answer on the same channel comes after the deliveries before it; one on another channel may overtake them.
        """
        await self._channel.call(self._channel.raw.basic_qos, prefetch_count=1)
        return bool(self._arrived)

    def ack(self, tag: int) -> None:
        """Raises UnavailableError if the channel has ended."""
        self._channel.ack(tag)
        self.in_hand -= 1

    def overlook(self) -> None:
        """Keep no more than the latest of what comes from now on: it is not looked at, only given back."""
        self._arrived = deque(maxlen=1)

    def close(self) -> None:
        """Give back what was not acked: in its order, which nacks would not keep."""
        self._channel.close()

    def end(self, reason: UnavailableError) -> None:
        """Cut its connection."""
        self._link.let_go(reason)

    def _came_from(self, queue: str) -> Callable[[RawChannel, Basic.Deliver, Received, bytes], None]:
        def came(_: RawChannel, method: Basic.Deliver, properties: Received, body: bytes) -> None:
            tag, redelivered = int(method.delivery_tag or 0), bool(method.redelivered)
            self.latest = Arrival(tag, queue, redelivered, properties, body)
            self._arrived.append(self.latest)
            self.in_hand += 1
            if self._waited_for:
                self._channel.answered()

        return came

    def _cancelled(self, _: Method[Basic.Cancel]) -> None:
        self._channel.fail(UnavailableError("RabbitMQ ended the consumer, as it does when a queue is deleted"))
