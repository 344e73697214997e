"""The dead-letter queues of a broker: how deep they are, what lies in them, and the way back.

Nothing reconnects behind its back: a look whose connection is lost raises UnavailableError, and its letters are where
they were.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property

from pillarbox.admin.broker_dead_letters import BrokerDeadLetter
from pillarbox.core.clock import Duration, SystemClock, seconds
from pillarbox.core.errors import RejectedError
from pillarbox.transports.rabbitmq.channel import ChannelRefused
from pillarbox.transports.rabbitmq.connection import Connection
from pillarbox.transports.rabbitmq.connection_manager import ConnectionManager, at_least_one, positive
from pillarbox.transports.rabbitmq.endpoint import endpoint_of
from pillarbox.transports.rabbitmq.source.headers import delivery_count, moved
from pillarbox.transports.rabbitmq.source.intake import Arrival, Intake
from pillarbox.transports.rabbitmq.source.letters import letter_of
from pillarbox.transports.rabbitmq.source.republisher import Republisher

MOST_IN_HAND = 65_535
"""What the protocol can count."""
_NOT_FOUND = 404
_PAUSE = 0.2
"""Seconds without a letter after which the queue is asked whether there are any."""


class RabbitMQLetter:
    """See `pillarbox.admin.broker_dead_letters.ReceivedDeadLetter`."""

    def __init__(self, arrival: Arrival, *, intake: Intake, mover: Republisher) -> None:
        self._arrival = arrival
        self._intake = intake
        self._republisher = mover
        self.stays = True

    @property
    def letter(self) -> BrokerDeadLetter:
        return self._letter

    @cached_property
    def _letter(self) -> BrokerDeadLetter:
        return letter_of(self._arrival)

    async def move(self, queue: str) -> None:
        properties = moved(self._arrival.properties, frame_max=self._intake.frame_max)
        await self._republisher.put(queue, properties, self._arrival.body)
        self._intake.ack(self._arrival.tag)
        self.stays = False


class RabbitMQDeadLetters:
    """See `pillarbox.admin.broker_dead_letters.BrokerDeadLetters`. Connects on first use, and declares nothing.

    Raises ConfigurationError.
    """

    def __init__(
        self,
        url: str,
        *,
        answer_timeout: Duration = "10s",
        heartbeat: Duration = "30s",
        connect_timeout: Duration = "10s",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._endpoint = endpoint_of(url, tls)
        self._patience = positive("answer_timeout", answer_timeout)
        self._connections, outward = (
            ConnectionManager(
                self._endpoint,
                heartbeat=seconds(heartbeat, field="heartbeat"),
                connect_timeout=positive("connect_timeout", connect_timeout),
                answer_timeout=self._patience,
                what="look",
            )
            for _ in range(2)
        )
        self._republisher = Republisher(self._endpoint, outward, (), SystemClock())

    def __repr__(self) -> str:
        return f"<RabbitMQDeadLetters at {self._endpoint}>"

    async def depth(self, queue: str) -> int | None:
        link = await self._connections.ready(())
        try:
            return await self._connections.in_time(link, link.depth(queue))
        except ChannelRefused as refusal:
            # The same code tells of a queue that is there, and whose node is not.
            if refusal.code == _NOT_FOUND and "no queue" in str(refusal):
                return None
            raise self._refused(queue, str(refusal)) from refusal

    @asynccontextmanager
    async def receive(self, queue: str, *, most: int, window: int) -> AsyncIterator[AsyncIterator[RabbitMQLetter]]:
        link = await self._connections.ready(())
        intake = Intake(self._endpoint, link)
        window = min(at_least_one("window", window), max(most, 1), MOST_IN_HAND)
        try:
            await self._connections.in_time(link, intake.open({queue: window}))
            yield self._letters(intake, link, queue, most=most, window=window)
            await self._complete(intake, link, queue, window)
        except ChannelRefused as refusal:
            raise self._refused(queue, str(refusal)) from refusal
        finally:
            intake.close()

    async def aclose(self) -> None:
        await self._connections.aclose()
        await self._republisher.aclose()

    async def _letters(
        self, intake: Intake, link: Connection, queue: str, *, most: int, window: int
    ) -> AsyncIterator[RabbitMQLetter]:
        staying = 0
        for _ in range(most):
            if staying == window:
                return
            arrival = await self._next(intake, link, queue)
            if arrival is None:
                return
            yield (letter := RabbitMQLetter(arrival, intake=intake, mover=self._republisher))
            staying += letter.stays

    async def _complete(self, intake: Intake, link: Connection, queue: str, window: int) -> None:
        """Take in hand what would change its place when the others are given back.

        A quorum queue puts what comes back behind what came back before, and at its very end what is on its way to a
        channel that is being closed.
        """
        intake.overlook()
        while intake.alive and await self.depth(queue):
            if intake.in_hand < window:
                await self._next(intake, link, queue)
            elif intake.latest is not None and delivery_count(intake.latest.properties, redelivered=False):
                more = min(window, MOST_IN_HAND)
                await self._connections.in_time(link, intake.take_more(queue, more))
                window += more
            else:
                return

    async def _next(self, intake: Intake, link: Connection, queue: str) -> Arrival | None:
        """The next; None if there is no more: a queue that is empty says nothing. It is also empty while the last
        letters are on their way to us."""
        try:
            async with asyncio.timeout(self._patience):
                while True:
                    try:
                        async with asyncio.timeout(_PAUSE):
                            return await intake.next()
                    except TimeoutError:
                        if not await self.depth(queue) and not await self._connections.in_time(link, intake.catch_up()):
                            return None
        except TimeoutError:
            raise self._refused(queue, "it gives out nothing; has another consumer the sole right to it?") from None

    def _refused(self, queue: str, reason: str) -> RejectedError:
        return RejectedError(f"queue {queue!r} at {self._endpoint} cannot be looked at: {reason}")
