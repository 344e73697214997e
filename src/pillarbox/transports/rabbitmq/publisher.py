"""A channel in confirm mode that carries one window of messages at a time: all published in one go, then one wait.

Always persistent, always mandatory. The broker sends back what no queue is bound for *before* it acks it; a return
carries no delivery tag, hence it is matched by message id, exchange and routing key.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable, Sequence

from pillarbox.core import failpoints
from pillarbox.core.errors import Nacked, PermanentError, Rejected, Unavailable
from pillarbox.transports.rabbitmq.channel import Channel
from pillarbox.transports.rabbitmq.confirms import Confirms
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
from pillarbox.transports.rabbitmq.parcel import Answers, Parcel
from pillarbox.transports.rabbitmq.place import Place
from pillarbox.transports.rabbitmq.properties import properties_of

Identity = tuple[str | None, str | None, str | None]


class Window:
    """What was published and is being confirmed. A message's place in `parcels` is its tag, counted from the first."""

    def __init__(self, parcels: Sequence[Parcel], first_tag: int) -> None:
        self._parcels = parcels
        self.confirms = Confirms(first_tag, len(parcels))
        self.returned: dict[int, str] = {}
        self._places: dict[Identity, deque[int]] | None = None

    def take_back(self, identity: Identity, reason: str) -> None:
        """Note a return for the first message of that identity that is neither confirmed nor returned."""
        if self._places is None:
            self._places = {}
            for place, parcel in enumerate(self._parcels):
                known_by = (parcel.event_id, parcel.exchange, parcel.routing_key)
                self._places.setdefault(known_by, deque()).append(place)
        places = self._places.get(identity, deque())
        while places:
            place = places.popleft()
            if self.confirms.accepted(place) is None:
                self.returned[place] = reason
                return

    def tell(self, answers: Answers) -> None:
        """Write down what is known; what is unconfirmed stays open."""
        for place, parcel in enumerate(self._parcels):
            accepted = self.confirms.accepted(place)
            if accepted is None:
                continue
            if not accepted:
                answers.answer(parcel.place, _nacked(parcel))
            elif place in self.returned:
                answers.answer(parcel.place, _unroutable(parcel, self.returned[place]))
            else:
                answers.answer(parcel.place, None)


class Publisher:
    """One lot at a time; `idle` says whether it may take the next."""

    def __init__(self, place: Place, *, on_confirm: Callable[[], None] = lambda: None) -> None:
        """`on_confirm` is told whenever the broker confirms something."""
        self._channel = Channel(place)
        self._on_confirm = on_confirm
        self._wire: Wire | None = None
        self._window: Window | None = None
        self._next_tag = 1

    async def open(self, wire: Wire) -> None:
        """Open it unless it is. Raises ChannelRefused, Unavailable."""
        if self._wire is not None:
            return
        self._wire = wire
        await self._channel.open(wire)
        self._channel.raw.add_on_return_callback(self._returned)
        await self._channel.call(self._channel.raw.confirm_delivery, ack_nack_callback=self._confirmed)

    @property
    def idle(self) -> bool:
        return self._channel.failure is None and self._window is None

    async def carry(self, parcels: Sequence[Parcel], answers: Answers) -> bool:
        """Publish and wait for every confirm; True if none came back unroutable.

        What is known is written down however it ends. Raises ChannelRefused, Unavailable; then, and when cancelled, the
        channel is of no more use, so that a late confirm finds nobody.
        """
        window = Window(self._published(parcels, answers), self._next_tag)
        self._next_tag += window.confirms.open
        self._window = window
        try:
            if window.confirms.open:
                failpoints.hit("after-send")
                await self._channel.answer()
            self._window = None
        finally:
            window.tell(answers)
        return not window.returned

    def fail(self, error: Unavailable) -> None:
        self._channel.fail(error)

    def close(self) -> None:
        self._channel.close()

    def _published(self, parcels: Sequence[Parcel], answers: Answers) -> list[Parcel]:
        published = []
        raw, wire, now = self._channel.raw, self._wire, int(time.time())
        assert wire is not None  # noqa: S101 - an open channel has one
        with wire.joined():
            for parcel in parcels:
                try:
                    properties = properties_of(parcel.outgoing, now, wire.params.frame_max)
                    raw.basic_publish(
                        parcel.exchange, parcel.routing_key, parcel.outgoing.body, properties, mandatory=True
                    )
                except PermanentError as error:
                    answers.answer(parcel.place, error)
                except (ChannelWrongStateError, ConnectionWrongStateError) as error:
                    raise Unavailable(f"the channel is gone: {error}") from error
                except (AMQPError, ValueError, TypeError, struct.error) as error:
                    answers.answer(parcel.place, _not_encodable(parcel, error))
                else:
                    published.append(parcel)
        return published

    def _confirmed(self, frame: Method[Basic.Ack] | Method[Basic.Nack]) -> None:
        if self._window is not None:
            failpoints.hit("before-confirm")
            self._on_confirm()
            method = frame.method
            self._window.confirms.resolve(
                method.delivery_tag, multiple=method.multiple, accepted=isinstance(method, Basic.Ack)
            )
            if not self._window.confirms.open:
                self._channel.answered()

    def _returned(self, _: RawChannel, method: Basic.Return, properties: BasicProperties, body: bytes) -> None:
        if self._window is not None:
            identity = (properties.message_id, method.exchange, method.routing_key)
            self._window.take_back(identity, f"{method.reply_text} ({method.reply_code})")


def _not_encodable(parcel: Parcel, error: Exception) -> PermanentError:
    return PermanentError(
        f"event {parcel.event_id} cannot be encoded for AMQP ({type(error).__name__}: {str(error)[:200]}); "
        "names and property texts have at most 255 bytes of UTF-8"
    )


def _unroutable(parcel: Parcel, reason: str) -> Rejected:
    return Rejected(
        f"no queue is bound for event {parcel.event_id} ({_where(parcel)}): {reason}; "
        "bind one, or change the destination's routing key"
    )


def _nacked(parcel: Parcel) -> Nacked:
    return Nacked(
        f"the broker said no to event {parcel.event_id} ({_where(parcel)}), as a full queue does; "
        "let consumers catch up or raise max_length"
    )


def _where(parcel: Parcel) -> str:
    return f"exchange {parcel.exchange!r}, routing key {parcel.routing_key!r}"
