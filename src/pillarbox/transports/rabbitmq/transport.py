"""RabbitMQ as a transport: connects on demand, publishes whole batches, returns one result per message.

Nothing reconnects in the background: a lost connection fails all unconfirmed messages, and the next `send` opens a new
one and declares the topology again. If the broker closes a channel, it does not name the message, and all unconfirmed
messages of the channel fail with it: they are published again, one by one, until the culprit is found.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

from pillarbox.core.clock import Duration
from pillarbox.core.errors import ConfigurationError, PermanentError, RejectedError, SendError, UnavailableError
from pillarbox.core.transport import Address, Outgoing, Pace, Result
from pillarbox.settings.shared import SEND_TIMEOUT
from pillarbox.transports.rabbitmq.confirms import BatchResults, Publication, publication_of
from pillarbox.transports.rabbitmq.connection import Connection, ConnectionManager, endpoint_of, positive
from pillarbox.transports.rabbitmq.driver import ChannelRefused
from pillarbox.transports.rabbitmq.topology import Exchange, Queue, RabbitMQAddress, RabbitMQOptions, Topology

_PERMANENT = (311, 406)
"""Content too large; precondition failed, also for a message over `max_message_size`."""
_ELSEWHERE = (403, 404)
"""Forbidden; no such exchange."""

BATCH = 500
"""Messages in one batch."""
BATCH_BYTES = 1024 * 1024
"""Bytes in one batch: on a slow link, confirmed messages are settled before the rest has left."""
NEW_QUEUES = 100
"""Queues that a send declares before it publishes to them and declares more."""


class RabbitMQTransport:
    """A broker. Makes no connection until something is sent, pinged or declared.

    `url` is `amqp[s]://user:password@host:port/vhost`; `window` limits the unconfirmed messages; without `declare`,
    sending declares nothing. Raises ConfigurationError.
    """

    address_type: type[Address] = RabbitMQAddress
    to = RabbitMQAddress
    """`RabbitMQTransport.to(exchange="orders", routing_key="{event_type}")`: an address on a broker."""

    def __init__(
        self,
        url: str,
        *,
        exchanges: Sequence[Exchange] = (),
        queues: Sequence[Queue] = (),
        window: int = RabbitMQOptions.window,
        declare: bool = RabbitMQOptions.declare,
        send_timeout: Duration = SEND_TIMEOUT,
        heartbeat: Duration = RabbitMQOptions.heartbeat,
        connect_timeout: Duration = RabbitMQOptions.connect_timeout,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        RabbitMQOptions(window=window, declare=declare, heartbeat=heartbeat, connect_timeout=connect_timeout)  # checks
        self._declaring = 0
        """Sends that wait for new queues."""
        self._endpoint = endpoint_of(url, tls)
        self._declarations = Topology(exchanges=exchanges, queues=queues).declarations()
        self._queues = frozenset(item.name for item in self._declarations if isinstance(item, Queue))
        self._declare = declare
        self._window = window
        self._pace = Pace(
            batch_size=min(BATCH, window),
            concurrency=2,
            in_order=True,
            bytes=BATCH_BYTES,
            progress=lambda: self._connections.progress,
        )
        self._unconfirmed = Window(self._window)
        self._connections = ConnectionManager(
            self._endpoint,
            heartbeat=heartbeat,
            connect_timeout=connect_timeout,
            answer_timeout=positive("send_timeout", send_timeout),
            what="transport",
        )

    def __repr__(self) -> str:
        return f"<RabbitMQTransport at {self._endpoint}>"

    @property
    def pace(self) -> Pace:
        """Sends that wait for new queues do not count: events for known queues are sent meanwhile."""
        return (
            replace(self._pace, concurrency=self._pace.concurrency + self._declaring) if self._declaring else self._pace
        )

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        """The durable queue named after the type, which the first send declares."""
        return {event_type: RabbitMQAddress()}

    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        """Publish everything at once and wait for the confirms. Raises UnavailableError once closed."""
        self._connections.check_open()
        results = BatchResults(len(batch))
        publications = _addressed(batch, results)
        for start in range(0, len(publications), self._window):
            try:
                await self._deliver(publications[start : start + self._window], results)
            except (UnavailableError, ConfigurationError) as error:
                # The rest must not go over a new connection: it would overtake unconfirmed messages of its keys.
                results.fail(publications[start:], _unavailable(error))
                break
        return results.as_list()

    async def ping(self) -> None:
        """Connect, declare and wait for an answer. Raises UnavailableError, also if the topology differs."""
        try:
            connection = await self._ready()
        except ConfigurationError as error:
            raise _unavailable(error) from error
        await self._connections.in_time(connection, connection.round_trip())

    async def declare_topology(self) -> None:
        """Declare everything configured, whatever `declare` says. Raises UnavailableError, and ConfigurationError with
        the difference if something exists that is not what the configuration says."""
        await self._connections.declare(self._declarations)

    async def aclose(self) -> None:
        """Close the connection; messages in flight fail with UnavailableError. Closing twice is fine."""
        await self._connections.aclose()

    def _ready(self) -> Coroutine[Any, Any, Connection]:
        return self._connections.ready(self._declarations if self._declare else ())

    async def _deliver(self, window: Sequence[Publication], results: BatchResults) -> None:
        """Set the result of every message, or raise UnavailableError for the pending ones."""
        publications, one_by_one = list(window), False
        while publications:
            connection = await self._ready()
            batch = self._with_queues(connection, publications) or await self._with_new_queues(
                connection, publications, results
            )
            batch = batch[:1] if one_by_one else batch
            await self._unconfirmed.take(len(batch))
            try:
                if batch and connection.lost is None:  # it may be lost while this waited for the window
                    with connection.waiting:
                        await self._publish(connection, batch, results)
            except ChannelRefused as refusal:
                if len(batch) == 1:
                    self._fail_refused(connection, batch[0], refusal, publications, results)
                one_by_one = len(batch) > 1
            finally:
                self._unconfirmed.give(len(batch))
            publications = results.pending(publications)

    async def _publish(
        self, connection: Connection, publications: Sequence[Publication], results: BatchResults
    ) -> None:
        publisher = await connection.publisher()
        try:
            unroutable = await publisher.publish(publications, results)
        finally:
            connection.put_back(publisher)
        if unroutable:
            connection.forget_declared(
                publication.routing_key for publication in unroutable if publication.exchange == ""
            )

    def _with_queues(self, connection: Connection, publications: Sequence[Publication]) -> list[Publication]:
        """The messages whose queue exists; those for the default exchange may need a queue that is not declared yet."""
        if not self._declare:
            return list(publications)
        return [
            publication
            for publication in publications
            if publication.exchange != ""
            or publication.routing_key in self._queues
            or connection.has_queue(publication.routing_key)
        ]

    async def _with_new_queues(
        self, connection: Connection, publications: Sequence[Publication], results: BatchResults
    ) -> list[Publication]:
        """Declare missing queues, and return the messages for them: some at a time, so that a lost connection does not
        undo the work for all of them."""
        names = list(dict.fromkeys(publication.routing_key for publication in publications))[:NEW_QUEUES]
        self._declaring += 1
        try:
            with connection.waiting:
                refused = await connection.declare_queues(names)
        finally:
            self._declaring -= 1
        for publication in publications:
            if (error := refused.get(publication.routing_key)) is not None:
                results.set(publication.position, _unavailable(error))
        return self._with_queues(connection, results.pending(publications))

    def _fail_refused(
        self,
        connection: Connection,
        culprit: Publication,
        refusal: ChannelRefused,
        publications: list[Publication],
        results: BatchResults,
    ) -> None:
        if refusal.code in _PERMANENT:
            results.set(culprit.position, PermanentError(f"RabbitMQ refuses event {culprit.event_id}: {refusal}"))
        elif refusal.code in _ELSEWHERE:
            connection.forget_declared([culprit.routing_key] if culprit.exchange == "" else [])
            where = f"RabbitMQ at {self._endpoint}"
            error = UnavailableError(
                f"{where} refuses exchange {culprit.exchange!r}, routing key {culprit.routing_key!r}: {refusal}"
            )
            # Other messages for it would be refused, too, each with the loss of a channel.
            same = [
                publication
                for publication in publications
                if publication.exchange == culprit.exchange
                and (refusal.code == 404 or publication.routing_key == culprit.routing_key)
            ]
            results.fail(same, error)
        else:
            results.set(culprit.position, RejectedError(f"RabbitMQ refuses event {culprit.event_id}: {refusal}"))


def _addressed(batch: Sequence[Outgoing], results: BatchResults) -> list[Publication]:
    """The messages with their routing keys; sets the results of those that have none."""
    addresses = [outgoing.address for outgoing in batch]
    if addresses and isinstance(address := addresses[0], RabbitMQAddress) and address.fixed_key is not None:
        exchange, key = address.exchange, address.fixed_key
        if addresses.count(address) == len(addresses):
            # Most batches have one address.
            return list(map(publication_of, zip(range(len(batch)), batch, repeat(exchange), repeat(key))))
    publications: list[Publication] = []
    for position, (outgoing, address) in enumerate(zip(batch, addresses, strict=True)):
        if not isinstance(address, RabbitMQAddress):
            error = UnavailableError(f"{address!r} is no address of RabbitMQ; make it with RabbitMQTransport.to(…)")
            results.set(position, error)
            continue
        try:
            key = address.key_for(outgoing.message)
        except PermanentError as refusal:
            results.set(position, refusal)
            continue
        publications.append(Publication(position, outgoing, address.exchange, key))
    return publications


def _unavailable(error: SendError | ConfigurationError) -> UnavailableError:
    return error if isinstance(error, UnavailableError) else UnavailableError(str(error))


class Window:
    """The number of messages that may be unconfirmed at once, over all batches: first come, first served."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, count: int) -> None:
        """Wait until `count` messages fit, at most the size of the window; `give` them back."""
        if not self._waiting and self._free >= count:
            self._free -= count
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((count, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self.give(0)
            else:
                self.give(count)
            raise

    def give(self, count: int) -> None:
        """Let others use these again."""
        self._free += count
        while self._waiting:
            wanted, turn = self._waiting[0]
            if not turn.cancelled():
                if wanted > self._free:
                    return
                self._free -= wanted
                turn.set_result(None)
            self._waiting.popleft()
