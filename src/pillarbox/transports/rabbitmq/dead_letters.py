"""The dead-letter queues of a broker: their depths, their messages, and moving these to another queue.

Nothing reconnects in the background: if the connection is lost while dead letters are received, UnavailableError is
raised, and the dead letters stay in their queue.

A consumer writes the reason of a failure into headers. The broker keeps a list of its own decisions in `x-death`, the
latest first. A consumer removes that list when it moves a message, so if there is one, the broker decided last.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cached_property
from typing import Any, cast

from pillarbox.admin.broker_dead_letters import BrokerDeadLetter, legible
from pillarbox.cloudevents import id_and_type
from pillarbox.core.clock import Duration, parse_timestamp
from pillarbox.core.errors import RejectedError
from pillarbox.settings.tls import Tls
from pillarbox.transports.rabbitmq.confirms import ChannelRefused
from pillarbox.transports.rabbitmq.connection import RabbitMQConnection, RabbitMQConnector
from pillarbox.transports.rabbitmq.plugin import BrokerEndpoint, RabbitMQOptions, at_least_one, positive
from pillarbox.transports.rabbitmq.properties import LAST_FAILED_AT, QUEUE, REASON, ReceivedMessage, count_in
from pillarbox.transports.rabbitmq.republisher import Republisher
from pillarbox.transports.rabbitmq.source import ConsumerChannel
from pillarbox.transports.rabbitmq.topology import fits

MAX_PREFETCH = 65_535
"""The limit of the protocol."""
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
        reply_timeout: Duration = "10s",
        heartbeat: Duration = RabbitMQOptions.heartbeat,
        connect_timeout: Duration = RabbitMQOptions.connect_timeout,
        tls: Tls = None,
    ) -> None:
        self._endpoint = BrokerEndpoint.parse(url, tls)
        self._timeout = positive("reply_timeout", reply_timeout)
        self._connector, republishing = (
            RabbitMQConnector(
                self._endpoint,
                heartbeat=heartbeat,
                connect_timeout=connect_timeout,
                reply_timeout=reply_timeout,
                what="connection",
            )
            for _ in range(2)
        )
        self._republisher = Republisher(republishing, ())

    def __repr__(self) -> str:
        return f"<RabbitMQDeadLetters at {self._endpoint}>"

    async def depth(self, queue: str) -> int | None:
        if not fits(queue):
            return None  # as for the default queue of an event type that has 255 bytes itself
        connection = await self._connector.ready(())
        try:
            return await self._connector.in_time(connection, _depth(connection, queue))
        except ChannelRefused as refusal:
            # The code is the same if the queue exists on a node that is down.
            if refusal.code == _NOT_FOUND and "no queue" in str(refusal):
                return None
            raise self._refused(queue, str(refusal)) from refusal

    @asynccontextmanager
    async def receive(
        self, queue: str, *, limit: int, prefetch: int
    ) -> AsyncIterator[AsyncIterator[RabbitMQReceivedDeadLetter]]:
        if not fits(queue):
            raise self._refused(queue, "its name is too long for AMQP, or not UTF-8")
        connection = await self._connector.ready(())
        prefetch = min(at_least_one("prefetch", prefetch), max(limit, 1), MAX_PREFETCH)
        try:
            opening = ConsumerChannel.consuming(connection, {queue: prefetch})
            channel = await self._connector.in_time(connection, opening)
            try:
                yield self._received(channel, connection, queue, limit=limit, prefetch=prefetch)
                await self._receive_rest(channel, connection, queue, prefetch)
            finally:
                # Returns unacked messages in their order, which nacks would not keep.
                connection.close_channel(channel)
        except ChannelRefused as refusal:
            raise self._refused(queue, str(refusal)) from refusal

    async def aclose(self) -> None:
        await self._connector.aclose()
        await self._republisher.aclose()

    async def _received(
        self, channel: ConsumerChannel, connection: RabbitMQConnection, queue: str, *, limit: int, prefetch: int
    ) -> AsyncIterator[RabbitMQReceivedDeadLetter]:
        staying = 0
        for _ in range(limit):
            if staying == prefetch:
                return
            message = await self._next(channel, connection, queue)
            if message is None:
                return
            yield (received := RabbitMQReceivedDeadLetter(message, channel, self._republisher))
            staying += received.stays

    async def _receive_rest(
        self, channel: ConsumerChannel, connection: RabbitMQConnection, queue: str, prefetch: int
    ) -> None:
        """Receive further messages that would change their position when the received ones return.

        A quorum queue puts a returned message behind those returned before, and at its very end a message that is on
        its way to a channel that is being closed.
        """
        channel.keep_latest()
        while channel.failure is None and await self.depth(queue):
            if channel.unacked < prefetch:
                await self._next(channel, connection, queue)
            elif channel.latest is not None and count_in(channel.latest.properties.headers, "x-delivery-count"):
                more = min(prefetch, MAX_PREFETCH)
                await self._connector.in_time(connection, channel.consume(queue, more))
                prefetch += more
            else:
                return

    async def _next(
        self, channel: ConsumerChannel, connection: RabbitMQConnection, queue: str
    ) -> ReceivedMessage | None:
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
                        if not await self._connector.in_time(connection, channel.catch_up()):
                            return None
        except TimeoutError:
            reason = "it delivers no message; another consumer may consume it exclusively"
            raise self._refused(queue, reason) from None

    def _refused(self, queue: str, reason: str) -> RejectedError:
        return RejectedError(f"queue {queue!r} at {self._endpoint} cannot be read: {reason}")


async def _depth(connection: RabbitMQConnection, queue: str) -> int:
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
    """A dead letter from its headers. Raises nothing, whatever a producer wrote."""
    incoming = message.incoming()
    event_id, event_type = id_and_type(incoming)
    headers = incoming.headers
    decision = _last_dead_lettering(message.properties.headers, message.queue)
    reasons = (_text(decision, "reason"), headers.get(REASON))
    decided_at = decision.get("time")
    failed_at = parse_timestamp(headers.get(LAST_FAILED_AT))
    return BrokerDeadLetter(
        queue=message.queue,
        event_id=legible(event_id),
        event_type=legible(event_type),
        reason="; before that: ".join(reason for reason in reasons if reason) or None,
        attempts=incoming.attempts or count_in(decision, "count"),
        dead_lettered_at=decided_at if isinstance(decided_at, datetime) else failed_at,
        original_queue=_text(decision, "queue") or headers.get(QUEUE) or None,
        delivery_count=message.delivery_count,
        content_type=legible(incoming.content_type),
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
