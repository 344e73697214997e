"""A channel in confirm mode that publishes one window of messages at a time: all in one go, then one wait.

Always persistent, always mandatory. The broker returns what no queue is bound for *before* it acks it; a return carries
no delivery tag, hence it is matched by message id, exchange and routing key.

Messages are encoded and confirms are read here, without pika (see frames.py). pika publishes what the encoder does not
take, in its turn, and everything where its internals are not what this version knows.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence

from pillarbox import failpoints
from pillarbox.core.errors import PermanentError, UnavailableError
from pillarbox.transports.rabbitmq.channel import Channel
from pillarbox.transports.rabbitmq.confirms import Answers, Publication, PublishedBatch
from pillarbox.transports.rabbitmq.driver import (
    AMQPError,
    Basic,
    BasicProperties,
    ChannelWrongStateError,
    ConnectionWrongStateError,
    Method,
    RawChannel,
    Wire,
)
from pillarbox.transports.rabbitmq.endpoint import Endpoint
from pillarbox.transports.rabbitmq.frames import PublishEncoder
from pillarbox.transports.rabbitmq.properties import properties_of


class Publisher:
    """One window at a time; `idle` says whether it may take the next."""

    def __init__(self, endpoint: Endpoint, *, on_confirm: Callable[[], None] = lambda: None) -> None:
        """`on_confirm` is called whenever the broker confirms something."""
        self._channel = Channel(endpoint)
        self._on_confirm = on_confirm
        self._wire: Wire | None = None
        self._encoder: PublishEncoder | None = None
        self._window: PublishedBatch | None = None
        self._next_tag = 1

    async def open(self, wire: Wire) -> None:
        """Once, before anything is published. Raises ChannelRefused, UnavailableError."""
        self._wire = wire
        await self._channel.open(wire)
        raw = self._channel.raw
        raw.add_on_return_callback(self._returned)
        await self._channel.call(raw.confirm_delivery, ack_nack_callback=self._confirmed_by_pika)
        if wire.direct:
            self._encoder = PublishEncoder(raw.channel_number, wire.params.frame_max)
            wire.take_confirms(raw, self._confirmed)

    @property
    def idle(self) -> bool:
        return self._channel.failure is None and self._window is None

    async def publish(self, publications: Sequence[Publication], answers: Answers) -> list[Publication]:
        """Publish and wait for every confirm; returns what came back unroutable.

        What is known is written down however it ends. Raises ChannelRefused, UnavailableError; then, and when
        cancelled, the channel is of no more use, so that a late confirm finds nobody.
        """
        wire, raw = self._wire, self._channel.raw
        if wire is None or not raw.is_open:
            raise UnavailableError("the channel is gone: it is no longer open")
        window = PublishedBatch(self._write(wire, raw, publications, answers), self._next_tag)
        end = wire.written
        self._next_tag += window.confirms.open
        self._window = window
        try:
            if window.confirms.open:
                failpoints.hit("after-send")
                await self._channel.answer()
                wire.received = max(wire.received, end)
            self._window = None
        finally:
            window.tell(answers)
        return window.unroutable

    def fail(self, error: UnavailableError) -> None:
        self._channel.fail(error)

    def close(self) -> None:
        self._channel.close()

    def _write(
        self, wire: Wire, raw: RawChannel, publications: Sequence[Publication], answers: Answers
    ) -> Sequence[Publication]:
        """Write them in their order; returns those that could be encoded. Raises UnavailableError."""
        encoder, now = self._encoder, int(time.time())
        if encoder is not None and (pieces := encoder.encode(publications, now)) is not None:
            wire.write(pieces)
            return publications
        published: list[Publication] = []
        with wire.joined():
            for publication in publications:
                if encoder is not None and (pieces := encoder.encode([publication], now)) is not None:
                    wire.write(pieces)
                elif (refusal := _publish_by_pika(raw, publication, now, wire.params.frame_max)) is not None:
                    answers.answer(publication.position, refusal)
                    continue
                published.append(publication)
        return published

    def _confirmed_by_pika(self, frame: Method[Basic.Ack] | Method[Basic.Nack]) -> None:
        method = frame.method
        self._confirmed(method.delivery_tag, method.multiple, isinstance(method, Basic.Ack))

    def _confirmed(self, tag: int, multiple: bool, accepted: bool) -> None:
        if self._window is not None:
            failpoints.hit("before-confirm")
            self._on_confirm()
            confirms = self._window.confirms
            confirms.resolve(tag, multiple=multiple, accepted=accepted)
            if not confirms.open:
                self._channel.answered()

    def _returned(self, _: RawChannel, method: Basic.Return, properties: BasicProperties, body: bytes) -> None:
        if self._window is not None:
            identity = (properties.message_id, method.exchange, method.routing_key)
            self._window.take_back(identity, f"{method.reply_text} ({method.reply_code})")


def _publish_by_pika(
    raw: RawChannel, publication: Publication, timestamp: int, frame_max: int
) -> PermanentError | None:
    """Publish one message; the error if it cannot be encoded, and then no byte of it is written. Raises
    UnavailableError."""
    outgoing = publication.outgoing
    try:
        properties = properties_of(outgoing, timestamp, frame_max)
        raw.basic_publish(publication.exchange, publication.routing_key, outgoing.body, properties, mandatory=True)
    except PermanentError as error:
        return error
    except (ChannelWrongStateError, ConnectionWrongStateError) as error:
        raise UnavailableError(f"the channel is gone: {error}") from error
    except (AMQPError, ValueError, TypeError, struct.error) as error:
        return PermanentError(
            f"event {publication.event_id} cannot be encoded for AMQP ({type(error).__name__}: {str(error)[:200]}); "
            "names and property texts have at most 255 bytes of UTF-8"
        )
    return None
