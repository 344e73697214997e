"""The dead-letter queues of a broker: their depths, their messages, and moving these to another queue.

Nothing reconnects in the background: if the connection is lost while dead letters are received, UnavailableError is
raised, and the dead letters stay in their queue.

A consumer writes the reason of a failure into headers. The broker keeps a list of its own decisions in `x-death`, the
latest first. A consumer removes that list when it moves a message, so if there is one, the broker decided last.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, cast

from pillarbox.admin.broker_dead_letters import BrokerDeadLetter
from pillarbox.core.clock import Duration
from pillarbox.core.errors import RejectedError
from pillarbox.core.outcome import legible
from pillarbox.transports.rabbitmq.connection import Connection, ConnectionManager, at_least_one, endpoint_of, positive
from pillarbox.transports.rabbitmq.driver import ChannelRefused
from pillarbox.transports.rabbitmq.properties import LAST_FAILED_AT, QUEUE, REASON, ReceivedMessage, count_in
from pillarbox.transports.rabbitmq.source import ConsumerChannel, Republisher
from pillarbox.transports.rabbitmq.topology import RabbitMQOptions

LARGEST_WINDOW = 65_535
"""The largest prefetch of the protocol."""
_NOT_FOUND = 404
_PAUSE = 0.2
"""Seconds without a message after which the depth of the queue is checked."""


class RabbitMQDeadLetters:
    """See `pillarbox.admin.broker_dead_letters.BrokerDeadLetters`. Connects on first use, and declares nothing.

    Raises ConfigurationError.
    """

    def __init__(
        self,
        url: str,
        *,
        answer_timeout: Duration = "10s",
        heartbeat: Duration = RabbitMQOptions.heartbeat,
        connect_timeout: Duration = RabbitMQOptions.connect_timeout,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._endpoint = endpoint_of(url, tls)
        self._timeout = positive("answer_timeout", answer_timeout)
        self._connections, republishing = (
            ConnectionManager(
                self._endpoint,
                heartbeat=heartbeat,
                connect_timeout=connect_timeout,
                answer_timeout=answer_timeout,
                what="connection",
            )
            for _ in range(2)
        )
        self._republisher = Republisher(republishing, ())

    def __repr__(self) -> str:
        return f"<RabbitMQDeadLetters at {self._endpoint}>"

    async def depth(self, queue: str) -> int | None:
        connection = await self._connections.ready(())
        try:
            return await self._connections.in_time(connection, _depth(connection, queue))
        except ChannelRefused as refusal:
            # The code is the same if the queue exists on a node that is down.
            if refusal.code == _NOT_FOUND and "no queue" in str(refusal):
                return None
            raise self._refused(queue, str(refusal)) from refusal

    @asynccontextmanager
    async def receive(
        self, queue: str, *, most: int, window: int
    ) -> AsyncIterator[AsyncIterator[RabbitMQReceivedDeadLetter]]:
        connection = await self._connections.ready(())
        window = min(at_least_one("window", window), max(most, 1), LARGEST_WINDOW)
        try:
            opening = ConsumerChannel.consuming(connection, {queue: window})
            channel = await self._connections.in_time(connection, opening)
            try:
                yield self._received(channel, connection, queue, most=most, window=window)
                await self._receive_rest(channel, connection, queue, window)
            finally:
                # Returns unacked messages in their order, which nacks would not keep.
                connection.close_channel(channel)
        except ChannelRefused as refusal:
            raise self._refused(queue, str(refusal)) from refusal

    async def aclose(self) -> None:
        await self._connections.aclose()
        await self._republisher.aclose()

    async def _received(
        self, channel: ConsumerChannel, connection: Connection, queue: str, *, most: int, window: int
    ) -> AsyncIterator[RabbitMQReceivedDeadLetter]:
        staying = 0
        for _ in range(most):
            if staying == window:
                return
            message = await self._next(channel, connection, queue)
            if message is None:
                return
            yield (received := RabbitMQReceivedDeadLetter(message, channel, self._republisher))
            staying += received.stays

    async def _receive_rest(self, channel: ConsumerChannel, connection: Connection, queue: str, window: int) -> None:
        """Receive further messages that would change their position when the received ones return.

        A quorum queue puts a returned message behind those returned before, and at its very end a message that is on
        its way to a channel that is being closed.
        """
        channel.keep_latest()
        while channel.failure is None and await self.depth(queue):
            if channel.unacked < window:
                await self._next(channel, connection, queue)
            elif channel.latest is not None and count_in(channel.latest.properties.headers, "x-delivery-count"):
                more = min(window, LARGEST_WINDOW)
                await self._connections.in_time(connection, channel.consume(queue, more))
                window += more
            else:
                return

    async def _next(self, channel: ConsumerChannel, connection: Connection, queue: str) -> ReceivedMessage | None:
        """The next message; None if there is none: the queue is empty, and no message is on its way."""
        try:
            async with asyncio.timeout(self._timeout):
                while True:
                    try:
                        async with asyncio.timeout(_PAUSE):
                            return await channel.next()
                    except TimeoutError:
                        if await self.depth(queue):
                            continue
                        if not await self._connections.in_time(connection, channel.catch_up()):
                            return None
        except TimeoutError:
            reason = "it delivers no message; another consumer may consume it exclusively"
            raise self._refused(queue, reason) from None

    def _refused(self, queue: str, reason: str) -> RejectedError:
        return RejectedError(f"queue {queue!r} at {self._endpoint} cannot be read: {reason}")


async def _depth(connection: Connection, queue: str) -> int:
    async with connection.channel() as channel:
        found = await channel.call(channel.raw.queue_declare, queue=queue, passive=True)
        return int(found.method.message_count)


class RabbitMQReceivedDeadLetter:
    """See `pillarbox.admin.broker_dead_letters.ReceivedDeadLetter`."""

    def __init__(self, message: ReceivedMessage, channel: ConsumerChannel, republisher: Republisher) -> None:
        self._message = message
        self._channel = channel
        self._republisher = republisher
        self.stays = True

    @property
    def dead_letter(self) -> BrokerDeadLetter:
        return self._dead_letter

    @cached_property
    def _dead_letter(self) -> BrokerDeadLetter:
        return dead_letter_of(self._message)

    async def move(self, queue: str) -> None:
        properties = self._message.properties.moved(frame_max=self._channel.wire.params.frame_max)
        await self._republisher.put(queue, properties, self._message.body)
        self._channel.ack(self._message.tag)
        self.stays = False


def dead_letter_of(message: ReceivedMessage) -> BrokerDeadLetter:
    """What the headers of a dead letter tell. Raises nothing, whatever a producer wrote."""
    incoming = message.incoming()
    headers = incoming.headers
    decision = _last_dead_lettering(message.properties.headers, message.queue)
    reasons = (_text(decision, "reason"), headers.get(REASON))
    decided_at = decision.get("time")
    return BrokerDeadLetter(
        queue=message.queue,
        event_id=_legible(incoming.event_id),
        event_type=_legible(incoming.event_type or headers.get("eventType")),
        reason="; before that: ".join(reason for reason in reasons if reason) or None,
        attempts=incoming.attempts or count_in(decision, "count"),
        dead_lettered_at=decided_at if isinstance(decided_at, datetime) else _time(headers.get(LAST_FAILED_AT)),
        original_queue=_text(decision, "queue") or headers.get(QUEUE) or None,
        delivery_count=message.delivery_count,
        content_type=_legible(incoming.content_type),
        size=len(message.body),
        body=message.body,
    )


def _last_dead_lettering(headers: Mapping[str, Any], queue: str) -> Mapping[str, Any]:
    """The latest decision of the broker in another queue than this."""
    decisions = headers.get("x-death")
    found = cast(list[object], decisions) if isinstance(decisions, list) else []
    tables = (cast(dict[str, Any], decision) for decision in found if isinstance(decision, dict))
    elsewhere = (decision for decision in tables if decision.get("queue") not in (None, queue))
    return next(elsewhere, dict[str, Any]())


def _text(decision: Mapping[str, Any], name: str) -> str | None:
    value = decision.get(name)
    return value if isinstance(value, str) and value else None


def _legible(text: str | None) -> str | None:
    """Escapes bytes that are not UTF-8."""
    return None if text is None else legible(text)


def _time(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text or "")
        return found.astimezone(UTC) if found.tzinfo else None
    except (ValueError, OverflowError):
        return None
