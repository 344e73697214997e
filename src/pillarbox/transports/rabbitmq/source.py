"""RabbitMQ as a source: a work queue, and the queues around it for retries, quarantine and dead letters.

Nothing reconnects in the background: after a connection is lost, `receive` raises UnavailableError, and the next
`receive` opens a new connection and declares everything again. A message that moves to another queue is acked only
after that queue has confirmed it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Self

from pillarbox.core.clock import Duration
from pillarbox.core.errors import RejectedError, UnavailableError
from pillarbox.core.source import Incoming
from pillarbox.settings.tls import Tls
from pillarbox.transports.rabbitmq.confirms import ChannelRefused
from pillarbox.transports.rabbitmq.connection import RabbitMQConnection, RabbitMQConnector
from pillarbox.transports.rabbitmq.driver import (
    Basic,
    Channel,
    ChannelWrongStateError,
    ConnectionWrongStateError,
    Method,
    RawChannel,
    Wire,
)
from pillarbox.transports.rabbitmq.plugin import BrokerEndpoint, RabbitMQOptions, at_least_one
from pillarbox.transports.rabbitmq.properties import EncodedProperties, ReceivedMessage, ReceivedProperties
from pillarbox.transports.rabbitmq.republisher import Republisher
from pillarbox.transports.rabbitmq.topology import RETRY_DELAYS, ConsumerQueues, Declaration, Exchange, Queue

_QUARANTINE_AFTER = 2
"""Deliveries without acknowledgement after which a message is quarantined."""


class RabbitMQSource:
    """See `pillarbox.core.source.Source`. Makes no connection until something is received or declared.

    `queue` is the name of a durable quorum queue, or a Queue with its bindings; `prefetch` limits the messages in
    flight; `retry_delays` are the available delays: a retry uses the shortest that is long enough. Without
    `declare`, receiving declares nothing. Raises ConfigurationError.
    """

    def __init__(
        self,
        url: str,
        *,
        queue: str | Queue,
        exchanges: Sequence[Exchange] = (),
        prefetch: int = 10,
        retry_delays: Sequence[Duration] = RETRY_DELAYS,
        declare: bool = RabbitMQOptions.declare,
        reply_timeout: Duration = "10s",
        heartbeat: Duration = RabbitMQOptions.heartbeat,
        connect_timeout: Duration = RabbitMQOptions.connect_timeout,
        tls: Tls = None,
    ) -> None:
        self._endpoint = BrokerEndpoint.parse(url, tls)
        self._queues = ConsumerQueues.around(queue, retry_delays)
        self._declarations = self._queues.declarations(exchanges)
        self._declared: Sequence[Declaration] = self._declarations if declare else ()
        self._prefetch = {self._queues.work.name: at_least_one("prefetch", prefetch), self._queues.quarantine: 1}
        self._connector, republishing = (
            RabbitMQConnector(
                self._endpoint,
                heartbeat=heartbeat,
                connect_timeout=connect_timeout,
                reply_timeout=reply_timeout,
                what="source",
            )
            for _ in range(2)
        )
        self._republisher = Republisher(republishing, self._declared)
        self._channel: ConsumerChannel | None = None

    def __repr__(self) -> str:
        return f"<RabbitMQSource {self._queues.work.name!r} at {self._endpoint}>"

    async def receive(self) -> RabbitMQDelivery:
        while True:
            channel = await self._opened()
            try:
                message = await channel.next()
            except UnavailableError as lost:
                if (connection := self._connector.connection) is not None:
                    connection.abort(lost)
                raise
            delivery = RabbitMQDelivery(message, channel, self._republisher, self._queues)
            if not delivery.must_quarantine:
                return delivery
            try:
                moved = await delivery.quarantine()
            except asyncio.CancelledError:
                channel.put_back(message)
                raise
            if not moved and channel.failure is None:
                return delivery

    async def connect(self) -> None:
        await self._opened()

    async def declare_topology(self) -> None:
        """Declare everything, whatever `declare` says. See `RabbitMQTransport.declare_topology`."""
        await self._connector.declare(self._declarations)

    async def aclose(self) -> None:
        """Close the connections; unacknowledged messages return to the queue. Closing twice is fine."""
        await self._connector.aclose()
        await self._republisher.aclose()

    async def _opened(self) -> ConsumerChannel:
        if (channel := self._channel) is None or channel.failure is not None:
            connection = await self._connector.ready(self._declared)
            if channel is not None:
                connection.close_channel(channel)  # the broker may have ended one consumer only
            try:
                opening = ConsumerChannel.consuming(connection, self._prefetch)
                channel = self._channel = await self._connector.in_time(connection, opening)
            except ChannelRefused as refusal:
                queue = f"queue {self._queues.work.name!r} at {self._endpoint}"
                connection.abort(lost := UnavailableError(f"{queue} cannot be consumed: {refusal}"))
                raise lost from refusal
        return channel


class RabbitMQDelivery:
    """See `pillarbox.core.source.Delivery`."""

    def __init__(
        self, message: ReceivedMessage, channel: ConsumerChannel, republisher: Republisher, queues: ConsumerQueues
    ) -> None:
        self._message = message
        self._channel = channel
        self._republisher = republisher
        self._queues = queues
        self._incoming: Incoming | None = None
        self._stays = False
        """Whether it could not move to quarantine, and is handled alone where it is."""

    @property
    def incoming(self) -> Incoming:
        # Not a cached_property, which pyright does not accept as the property of a protocol.
        if self._incoming is None:
            self._incoming = self._message.incoming(queue=self._queues.work.name)
        return self._incoming

    @property
    def quarantined(self) -> bool:
        return self._stays or self._message.queue == self._queues.quarantine

    @property
    def crashes(self) -> int:
        if self._stays:
            return self._message.delivery_count - self._limit if self._channel.first_staying is self._message else 0
        return self._message.delivery_count if self.quarantined else 0

    @property
    def must_quarantine(self) -> bool:
        return not self.quarantined and self._message.delivery_count >= self._limit

    @property
    def _limit(self) -> int:
        """A classic queue, whatever was configured, counts only to one."""
        return _QUARANTINE_AFTER if "x-delivery-count" in self._message.properties.headers else 1

    async def ack(self) -> None:
        self._channel.ack(self._message.tag)

    async def retry(self, *, delay: float, reason: str, counted: bool = True) -> None:
        await self._fail(self._queues.retry_queue(delay), reason, counted=counted)

    async def reject(self, reason: str) -> None:
        await self._fail(self._queues.dead, reason, counted=True)

    async def quarantine(self) -> bool:
        """Move the message to quarantine, which delivers one message at a time; False if the broker does not take it
        there now, as while it is short of memory: then it stays in flight, quarantined."""
        message, channel = self._message, self._channel
        properties = message.properties.moved(frame_max=channel.wire.params.frame_max)
        try:
            await self._republisher.put(self._queues.quarantine, properties, message.body)
        except (RejectedError, UnavailableError):
            self._stays = True
            channel.first_staying = channel.first_staying or message
            return False
        await self.ack()
        return True

    async def _fail(self, queue: str, reason: str, *, counted: bool) -> None:
        properties, work = self._message.properties, self._queues.work.name
        frame_max = self._channel.wire.params.frame_max
        failed = properties.failed(self.incoming, queue=work, reason=reason, counted=counted, frame_max=frame_max)
        await self._move(queue, failed)

    async def _move(self, queue: str, properties: EncodedProperties) -> None:
        body, channel = self._message.body, self._channel
        await self._republisher.move(queue, properties, body, wanted=lambda: channel.failure is None)
        await self.ack()


class ConsumerChannel(Channel):
    """A channel that consumes queues, each with its own prefetch. When it ends, unacked messages return to them."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self._received: deque[ReceivedMessage] = deque()
        self._waiting = False
        self.unacked = 0
        self.latest: ReceivedMessage | None = None
        self.first_staying: ReceivedMessage | None = None
        """The first message that could not move to quarantine. They are handled alone and in order: when consumers
        crashed, the broker counted it for all of them, but this one was being handled."""

    @classmethod
    async def consuming(cls, connection: RabbitMQConnection, prefetch: Mapping[str, int]) -> Self:
        """Open a channel and consume these queues. Raises ChannelRefused, UnavailableError."""
        channel = await connection.open_channel(cls)
        try:
            channel.raw.add_on_cancel_callback(channel._cancelled)
            for queue, count in prefetch.items():
                await channel.consume(queue, count)
        except BaseException:
            connection.close_channel(channel)
            raise
        return channel

    async def consume(self, queue: str, prefetch: int) -> None:
        """Receive up to `prefetch` more unacked messages of a queue. Raises ChannelRefused, UnavailableError."""
        raw = self.raw
        await self.call(raw.basic_qos, prefetch_count=prefetch)
        await self.call(
            raw.basic_consume,
            queue=queue,
            on_message_callback=partial(self._on_message, queue),
            # When the channel ends, a quorum queue takes unacked messages back in the order of these names.
            consumer_tag=f"pillarbox-{len(raw.consumer_tags):04}",
        )

    async def next(self) -> ReceivedMessage:
        """The next message. Raises UnavailableError once the channel has ended: its messages are delivered again."""
        try:
            while self.failure is None and not self._received:
                self._waiting = True
                await self.reply()
            _ = self.raw
        except ChannelRefused as refusal:
            raise UnavailableError(f"RabbitMQ closed the channel: {refusal}") from refusal
        finally:
            self._waiting = False
        return self._received.popleft()

    def put_back(self, message: ReceivedMessage) -> None:
        """Return it by `next` again."""
        self._received.appendleft(message)

    async def catch_up(self) -> bool:
        """Wait for all messages that the broker has sent before now; whether any is here. Raises UnavailableError.

        A reply on the same channel arrives after the messages before it; one on another channel may overtake them.
        """
        await self.call(self.raw.basic_qos, prefetch_count=1)
        return bool(self._received)

    def ack(self, tag: int) -> None:
        """Raises UnavailableError if the channel has ended: then the message is delivered again."""
        try:
            self.raw.basic_ack(tag)
        except (ChannelRefused, ChannelWrongStateError, ConnectionWrongStateError) as error:
            raise UnavailableError(f"the message can no longer be acked: {error}; it is delivered again") from error
        self.unacked -= 1

    def keep_latest(self) -> None:
        """Keep only the latest message from now on; the others are unacked and return when the channel is closed."""
        self._received = deque(maxlen=1)

    def _on_message(
        self, queue: str, _: RawChannel, method: Basic.Deliver, properties: ReceivedProperties, body: bytes
    ) -> None:
        tag, redelivered = int(method.delivery_tag or 0), bool(method.redelivered)
        self.latest = ReceivedMessage(tag, queue, redelivered, properties, body)
        self._received.append(self.latest)
        self.unacked += 1
        if self._waiting:
            self.replied()

    def _cancelled(self, _: Method[Basic.Cancel]) -> None:
        self.fail(UnavailableError("RabbitMQ ended the consumer, as it does when a queue is deleted"))
