"""RabbitMQ as a transport: connects on demand, sends whole lots, gives every message its answer.

Nothing reconnects behind its back: a lost connection fails what is unconfirmed, and the next `send` opens a new one and
declares the topology again. A channel error names no message and takes its neighbours with it: what was unconfirmed is
sent again, one by one, until the culprit is alone.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pillarbox.core.duration import Duration, seconds
from pillarbox.core.errors import ConfigurationError, PermanentError, Rejected, SendError, Unavailable
from pillarbox.core.transport import Address, Outgoing, Pace, Result
from pillarbox.transports.rabbitmq.address import RabbitAddress
from pillarbox.transports.rabbitmq.channel import ChannelRefused
from pillarbox.transports.rabbitmq.line import Line, at_least_one, positive
from pillarbox.transports.rabbitmq.link import Link
from pillarbox.transports.rabbitmq.parcel import Answers, Parcel
from pillarbox.transports.rabbitmq.place import place_of
from pillarbox.transports.rabbitmq.room import Room
from pillarbox.transports.rabbitmq.topology import Exchange, Queue, Topology

_PERMANENT = (311, 406)
"""Content too large; precondition failed, which is also what a message over `max_message_size` gets."""
_ELSEWHERE = (403, 404)
"""Forbidden; no such exchange."""

LOT = 500
"""Messages in one lot."""
LOT_BYTES = 1024 * 1024
"""Bytes in one lot: on a slow link, what was confirmed is settled before the rest has left."""
NEW_QUEUES = 100
"""Queues that a send declares before it publishes to them and declares more."""


class RabbitMQ:
    """A broker. Makes no connection until something is sent, pinged or declared.

    `url` is `amqp[s]://user:password@host:port/vhost`; `window` is the most messages unconfirmed at once; without
    `declare` nothing is ever declared by sending. Raises ConfigurationError.
    """

    address_type: type[Address] = RabbitAddress

    def __init__(
        self,
        url: str,
        *,
        exchanges: Sequence[Exchange] = (),
        queues: Sequence[Queue] = (),
        window: int = 1000,
        declare: bool = True,
        send_timeout: Duration = "10s",
        heartbeat: Duration = "30s",
        connect_timeout: Duration = "10s",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._declaring = 0
        """How many sends wait for new queues."""
        self._place = place_of(url, tls)
        self._declarations = Topology(exchanges=exchanges, queues=queues).declarations()
        self._queues = frozenset(item.name for item in self._declarations if isinstance(item, Queue))
        self._declare = declare
        self._window = at_least_one("window", window)
        self._pace = Pace(
            lot=min(LOT, window), lots=2, in_order=True, bytes=LOT_BYTES, progress=lambda: self._line.progress
        )
        self._room = Room(self._window)
        self._line = Line(
            self._place,
            heartbeat=seconds(heartbeat, field="heartbeat"),
            connect_timeout=positive("connect_timeout", connect_timeout),
            answer_timeout=positive("send_timeout", send_timeout),
            what="transport",
        )

    @staticmethod
    def to(*, exchange: str = "", routing_key: str = "{event_type}", transport: str = "") -> RabbitAddress:
        """A place on a broker. Without an exchange the routing key is a queue's name. Raises ConfigurationError."""
        return RabbitAddress(exchange=exchange, routing_key=routing_key, transport=transport)

    def __repr__(self) -> str:
        return f"<RabbitMQ at {self._place}>"

    @property
    def pace(self) -> Pace:
        """Sends that wait for new queues leave their turn to others: known queues take events meanwhile."""
        return replace(self._pace, lots=self._pace.lots + self._declaring) if self._declaring else self._pace

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        """The durable queue named after the type, which the first send declares."""
        return {event_type: RabbitAddress()}

    async def send(self, lot: Sequence[Outgoing]) -> list[Result]:
        """Publish everything at once and wait for the confirms. Raises Unavailable once closed."""
        self._line.check_open()
        answers = Answers(len(lot))
        parcels = [parcel for place, outgoing in enumerate(lot) if (parcel := _addressed(place, outgoing, answers))]
        for start in range(0, len(parcels), self._window):
            try:
                await self._deliver(parcels[start : start + self._window], answers)
            except (Unavailable, ConfigurationError) as error:
                # Not the rest over a new connection: it would overtake those of its keys that are cut off.
                answers.close(parcels[start:], _unavailable(error))
                break
        return answers.results()

    async def ping(self) -> None:
        """Connect, declare, ask the broker something. Raises Unavailable, also where the topology does not fit."""
        try:
            link = await self._ready()
        except ConfigurationError as error:
            raise _unavailable(error) from error
        await self._line.in_time(link, link.round_trip())

    async def declare_topology(self) -> None:
        """Declare everything configured, whatever `declare` says. Raises Unavailable, and ConfigurationError with the
        difference if something exists that is not what the configuration says."""
        await self._line.declare(self._declarations)

    async def aclose(self) -> None:
        """Say goodbye and close; what is being sent is answered with Unavailable. Closing twice is fine."""
        await self._line.aclose()

    async def _ready(self) -> Link:
        return await self._line.ready(self._declarations if self._declare else ())

    async def _deliver(self, window: Sequence[Parcel], answers: Answers) -> None:
        """Answer every message of the window, or raise Unavailable for those that are left."""
        parcels, one_by_one = list(window), False
        while parcels:
            link = await self._ready()
            batch = self._with_queues(link, parcels) or await self._with_new_queues(link, parcels, answers)
            batch = batch[:1] if one_by_one else batch
            await self._room.take(len(batch))
            try:
                if batch and link.lost is None:  # it may be lost after a wait for places: then there is a new one
                    await self._line.while_it_moves(link, self._carry(link, batch, answers))
            except ChannelRefused as refusal:
                if len(batch) == 1:
                    self._blame(link, batch[0], refusal, parcels, answers)
                one_by_one = len(batch) > 1
            finally:
                self._room.give(len(batch))
            parcels = answers.without(parcels)

    async def _carry(self, link: Link, parcels: Sequence[Parcel], answers: Answers) -> None:
        async with link.publisher() as publisher:
            if unroutable := await publisher.carry(parcels, answers):
                link.doubt(parcel.routing_key for parcel in unroutable if parcel.exchange == "")

    def _with_queues(self, link: Link, parcels: Sequence[Parcel]) -> list[Parcel]:
        """Those whose queue exists: what goes to the default exchange is sent to a queue that nobody else declares."""
        return [
            parcel
            for parcel in parcels
            if not self._declare
            or parcel.exchange != ""
            or parcel.routing_key in self._queues
            or link.has_queue(parcel.routing_key)
        ]

    async def _with_new_queues(self, link: Link, parcels: Sequence[Parcel], answers: Answers) -> list[Parcel]:
        """Those whose queue was declared just now: some at a time, so that a connection that is lost meanwhile does not
        undo the work for all of them."""
        names = list(dict.fromkeys(parcel.routing_key for parcel in parcels))[:NEW_QUEUES]
        self._declaring += 1
        try:
            refused = await self._line.while_it_moves(link, link.declare_queues(names))
        finally:
            self._declaring -= 1
        for parcel in parcels:
            if (error := refused.get(parcel.routing_key)) is not None:
                answers.answer(parcel.place, _unavailable(error))
        return self._with_queues(link, answers.without(parcels))

    def _blame(
        self, link: Link, culprit: Parcel, refusal: ChannelRefused, parcels: list[Parcel], answers: Answers
    ) -> None:
        if refusal.code in _PERMANENT:
            answers.answer(culprit.place, PermanentError(f"RabbitMQ refuses event {culprit.event_id}: {refusal}"))
        elif refusal.code in _ELSEWHERE:
            link.doubt([culprit.routing_key] if culprit.exchange == "" else [])
            where = f"exchange {culprit.exchange!r}, routing key {culprit.routing_key!r}"
            error = Unavailable(f"RabbitMQ at {self._place} takes nothing for {where}: {refusal}")
            # Nobody else who goes there has to lose a channel over it.
            same = [
                parcel
                for parcel in parcels
                if parcel.exchange == culprit.exchange
                and (refusal.code == 404 or parcel.routing_key == culprit.routing_key)
            ]
            answers.close(same, error)
        else:
            answers.answer(culprit.place, Rejected(f"RabbitMQ refuses event {culprit.event_id}: {refusal}"))


def _addressed(place: int, outgoing: Outgoing, answers: Answers) -> Parcel | None:
    address = outgoing.address
    if not isinstance(address, RabbitAddress):
        answers.answer(place, Unavailable(f"{address!r} is no place on RabbitMQ; make it with RabbitMQ.to(…)"))
        return None
    try:
        return Parcel(place, outgoing, address.exchange, address.key_for(outgoing.message))
    except PermanentError as error:
        answers.answer(place, error)
        return None


def _unavailable(error: SendError | ConfigurationError) -> Unavailable:
    return error if isinstance(error, Unavailable) else Unavailable(str(error))
