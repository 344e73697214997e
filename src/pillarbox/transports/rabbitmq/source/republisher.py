"""From one queue to another: persistent, mandatory, confirmed, one at a time.

It has a connection of its own: a broker that is short of memory stops listening to connections that publish, and acks
must still get through.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

from pillarbox.core.clock import Clock, system_chance
from pillarbox.core.errors import NackedError, RejectedError, UnavailableError
from pillarbox.core.retry import Backoff
from pillarbox.transports.rabbitmq.channel import Channel, ChannelRefused
from pillarbox.transports.rabbitmq.connection import Connection
from pillarbox.transports.rabbitmq.connection_manager import ConnectionManager
from pillarbox.transports.rabbitmq.driver import (
    AMQPError,
    Basic,
    BasicProperties,
    Method,
    RawChannel,
)
from pillarbox.transports.rabbitmq.endpoint import Endpoint
from pillarbox.transports.rabbitmq.names import LONGEST, fits
from pillarbox.transports.rabbitmq.received import Encoded
from pillarbox.transports.rabbitmq.topology import Declaration


class Republisher:
    """Puts messages into queues of the same broker."""

    def __init__(
        self, endpoint: Endpoint, line: ConnectionManager, declarations: Sequence[Declaration], clock: Clock
    ) -> None:
        self._endpoint = endpoint
        self._connections = line
        self._declarations = declarations
        self._clock = clock
        self._turn = asyncio.Lock()
        self._channel: Channel | None = None
        self._sent_back: RejectedError | None = None

    async def move(self, queue: str, properties: Encoded, body: bytes, *, wanted: Callable[[], bool]) -> None:
        """Returns when the message is safe in that queue; tries for as long as it is wanted there. Raises
        UnavailableError if it no longer is."""
        backoff = Backoff(system_chance())
        while True:
            try:
                return await self.put(queue, properties, body)
            except (RejectedError, UnavailableError) as error:
                if not wanted():
                    raise UnavailableError(
                        f"the message did not reach queue {queue!r}: {error}; it comes again"
                    ) from error
            await self._clock.sleep(backoff.next())

    async def put(self, queue: str, properties: Encoded, body: bytes) -> None:
        """Try once; returns when the message is safe in that queue.

        Raises RejectedError if there is no such queue, NackedError if it is full, UnavailableError for everything else.
        """
        if not fits(queue):
            raise RejectedError(f"there is no such queue: no name is longer than {LONGEST} bytes of UTF-8")
        async with self._turn:
            await self._put(queue, properties, body)

    async def aclose(self) -> None:
        await self._connections.aclose()

    async def _put(self, queue: str, properties: Encoded, body: bytes) -> None:
        link = await self._connections.ready(self._declarations)
        try:
            channel = await self._opened(link)
            self._sent_back = None
            channel.raw.basic_publish("", queue, body, cast(BasicProperties, properties), mandatory=True)
            no: RejectedError | NackedError | None = await self._connections.in_time(link, channel.answer())
        except ChannelRefused as refusal:
            raise self._dropped(link, f"RabbitMQ refuses it: {refusal}") from refusal
        except AMQPError as error:
            raise self._dropped(link, f"{type(error).__name__}: {error}") from error
        except asyncio.CancelledError:
            self._dropped(link, "cancelled")  # a late confirm must find nobody who waits for another
            raise
        if no is not None:
            link.doubt()
            raise no

    def _dropped(self, link: Connection, reason: str) -> UnavailableError:
        link.let_go(error := UnavailableError(reason))
        return error

    async def _opened(self, link: Connection) -> Channel:
        if self._channel is None or self._channel.failure is not None:
            channel = Channel(self._endpoint)
            await self._connections.in_time(link, self._open(link, channel))
            self._channel = channel
        return self._channel

    async def _open(self, link: Connection, channel: Channel) -> None:
        await link.adopt(channel)
        channel.raw.add_on_return_callback(self._returned)
        await channel.call(channel.raw.confirm_delivery, ack_nack_callback=self._confirmed)

    def _confirmed(self, frame: Method[Basic.Ack] | Method[Basic.Nack]) -> None:
        nacked = isinstance(frame.method, Basic.Nack)
        if self._channel is not None:
            self._channel.answered(
                NackedError("the broker said no to it, as a full queue does") if nacked else self._sent_back
            )

    def _returned(self, _: RawChannel, method: Basic.Return, properties: BasicProperties, body: bytes) -> None:
        self._sent_back = RejectedError(f"there is no such queue: {method.reply_text} ({method.reply_code})")
