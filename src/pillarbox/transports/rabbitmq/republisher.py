"""Moves messages between the queues of a broker, for consumers and operators."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

from pillarbox.core.clock import system_rng
from pillarbox.core.errors import NackedError, RejectedError, UnavailableError
from pillarbox.core.retry import Backoff
from pillarbox.transports.rabbitmq.confirms import ChannelRefused
from pillarbox.transports.rabbitmq.connection import RabbitMQConnection, RabbitMQConnector
from pillarbox.transports.rabbitmq.driver import AMQPError, Basic, BasicProperties, Channel, Method, RawChannel
from pillarbox.transports.rabbitmq.properties import EncodedProperties
from pillarbox.transports.rabbitmq.topology import Declaration, fits


class Republisher:
    """Moves messages to other queues of the broker: persistent, mandatory, confirmed, one at a time.

    It needs a connection of its own: a broker that is short of memory stops reading from connections that publish, and
    acks must still get through.
    """

    def __init__(self, connector: RabbitMQConnector, declarations: Sequence[Declaration]) -> None:
        self._connector = connector
        self._declarations = declarations
        self._turn = asyncio.Lock()
        self._channel: Channel | None = None
        self._returned: RejectedError | None = None

    async def move(self, queue: str, properties: EncodedProperties, body: bytes, *, wanted: Callable[[], bool]) -> None:
        """Publish with retries until the queue confirms the message. Raises UnavailableError once it is not `wanted`
        there any more."""
        backoff = Backoff(system_rng())
        while True:
            try:
                return await self.put(queue, properties, body)
            except (RejectedError, UnavailableError) as error:
                if not wanted():
                    raise UnavailableError(
                        f"the message did not reach queue {queue!r}: {error}; it is delivered again"
                    ) from error
            await asyncio.sleep(backoff.next())

    async def put(self, queue: str, properties: EncodedProperties, body: bytes) -> None:
        """Publish once; returns when the queue has confirmed the message.

        Raises RejectedError if there is no such queue, NackedError if it is full, UnavailableError otherwise.
        """
        if not fits(queue):
            raise RejectedError("there is no such queue: its name is too long for AMQP, or not UTF-8")
        async with self._turn:
            connection = await self._connector.ready(self._declarations)
            try:
                refused = await self._publish(connection, queue, properties, body)
            except (ChannelRefused, AMQPError) as error:
                what = "RabbitMQ refuses it" if isinstance(error, ChannelRefused) else type(error).__name__
                connection.abort(lost := UnavailableError(f"{what}: {error}"))
                raise lost from error
            except asyncio.CancelledError:
                # The next message must not receive the late confirm of this one.
                connection.abort(UnavailableError("cancelled"))
                raise
            if refused is not None:
                connection.forget_declared()
                raise refused

    async def aclose(self) -> None:
        await self._connector.aclose()

    async def _publish(
        self, connection: RabbitMQConnection, queue: str, properties: EncodedProperties, body: bytes
    ) -> RejectedError | NackedError | None:
        if (channel := self._channel) is None or channel.failure is not None:
            if channel is not None:
                connection.close_channel(channel)  # the broker may have been blocked only
            channel = self._channel = await self._connector.in_time(connection, self._opened(connection))
        self._returned = None
        channel.raw.basic_publish("", queue, body, cast(BasicProperties, properties), mandatory=True)
        refused: RejectedError | NackedError | None = await self._connector.in_time(connection, channel.reply())
        return refused

    async def _opened(self, connection: RabbitMQConnection) -> Channel:
        channel = await connection.open_channel(Channel)

        def on_return(_: RawChannel, method: Basic.Return, properties: BasicProperties, body: bytes) -> None:
            self._returned = RejectedError(f"there is no such queue: {method.reply_text} ({method.reply_code})")

        def on_confirm(frame: Method[Basic.Ack] | Method[Basic.Nack]) -> None:
            nacked = isinstance(frame.method, Basic.Nack)
            channel.replied(NackedError("the broker nacked it, as a full queue does") if nacked else self._returned)

        channel.raw.add_on_return_callback(on_return)
        await channel.call(channel.raw.confirm_delivery, ack_nack_callback=on_confirm)
        return channel
