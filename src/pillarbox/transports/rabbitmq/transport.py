"""RabbitMQ as a transport: connects on demand, publishes whole batches, returns one result per message.

Nothing reconnects in the background: a lost connection fails all unconfirmed messages, and the next `send` opens a new
one and declares the topology again. If the broker closes a channel, it does not name the message, and all unconfirmed
messages of the channel fail with it: they are published again, one by one, until the culprit is found.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

from pillarbox.core.clock import Duration
from pillarbox.core.errors import (
    ConfigurationError,
    NackedError,
    PermanentError,
    RejectedError,
    SendError,
    UnavailableError,
)
from pillarbox.core.transport import Address, Outgoing, Pace, SendResult
from pillarbox.settings.shared import SEND_TIMEOUT
from pillarbox.settings.tls import Tls
from pillarbox.transports.rabbitmq.confirms import (
    BatchResults,
    ChannelRefused,
    ConfirmWindow,
    Publication,
    publication_of,
)
from pillarbox.transports.rabbitmq.connection import RabbitMQConnection, RabbitMQConnector
from pillarbox.transports.rabbitmq.declaring import SecondDeclaration, declare
from pillarbox.transports.rabbitmq.plugin import BrokerEndpoint, RabbitMQAddress, RabbitMQOptions, positive
from pillarbox.transports.rabbitmq.topology import Declaration, Exchange, Queue, QueueType, Topology

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
CHANNELS = 5
"""Channels over which queues are declared at once: 3 times as fast as one; more are no faster."""

_QueueErrors = dict[str, ConfigurationError | UnavailableError]
_QueuesLeft = deque[tuple[str, Declaration | SecondDeclaration | None]]
"""Names of queues to declare; a queue that exists with other arguments comes again, with its second declaration."""


class RabbitMQTransport:
    """A broker. Makes no connection until something is sent, pinged or declared.

    `url` is `amqp[s]://user:password@host:port/vhost`; `window` limits the unconfirmed messages; without `declare`,
    sending declares nothing; `new_queues` is the type of queues that are declared by their names. `RabbitMQOptions`
    describes the others, with units and defaults. Raises ConfigurationError.
    """

    address_type: type[Address] = RabbitMQAddress
    to = RabbitMQAddress
    """`RabbitMQTransport.to(exchange="orders", routing_key="{event_type}")`: an address on a broker."""

    def __init__(
        self,
        url: str,
        *,
        exchanges: Sequence[Exchange] = RabbitMQOptions.exchanges,
        queues: Sequence[Queue] = RabbitMQOptions.queues,
        window: int = RabbitMQOptions.window,
        declare: bool = RabbitMQOptions.declare,
        new_queues: QueueType = "quorum",
        send_timeout: Duration = SEND_TIMEOUT,
        heartbeat: Duration = RabbitMQOptions.heartbeat,
        connect_timeout: Duration = RabbitMQOptions.connect_timeout,
        tls: Tls = None,
    ) -> None:
        RabbitMQOptions(window=window, declare=declare, heartbeat=heartbeat, connect_timeout=connect_timeout)  # checks
        self._declaring = 0
        """Sends that wait for new queues."""
        self._endpoint = BrokerEndpoint.parse(url, tls)
        self._declarations = Topology(exchanges=exchanges, queues=queues).declarations()
        self._queues = frozenset(item.name for item in self._declarations if isinstance(item, Queue))
        self._declare = declare
        Queue(name="-", type=new_queues)  # checks it
        self._new_queues: QueueType = new_queues
        self._window = window
        self._pace = Pace(
            batch_size=min(BATCH, window),
            concurrency=2,
            in_order=True,
            bytes=BATCH_BYTES,
            progress=lambda: self._connector.progress,
        )
        self._unconfirmed = ConfirmWindow(window)
        self._connector = RabbitMQConnector(
            self._endpoint,
            heartbeat=heartbeat,
            connect_timeout=connect_timeout,
            reply_timeout=positive("send_timeout", send_timeout),
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

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        """Publish everything at once and wait for the confirms. Raises UnavailableError once closed."""
        self._connector.check_open()
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
        """Connect, declare and wait for a reply. Raises UnavailableError, also if the topology would lose events."""
        try:
            connection = await self._ready()
        except ConfigurationError as error:
            raise _unavailable(error) from error
        await self._connector.in_time(connection, connection.round_trip())

    async def declare_topology(self) -> None:
        """Declare everything configured, whatever `declare` says. A queue that exists with other arguments is used as
        it is, with a warning. Raises UnavailableError, and ConfigurationError with the difference if an exchange
        differs, or a queue in a way that would lose events."""
        await self._connector.declare(self._declarations)

    async def delete_queue(self, name: str) -> None:
        """Delete a queue with its messages; succeeds also if there is none. Raises what `declare_topology` raises."""
        connection = await self._ready()
        try:
            await self._connector.in_time(connection, _delete_queue(connection, name))
        except ChannelRefused as refusal:
            raise UnavailableError(f"queue {name!r} at {self._endpoint} cannot be deleted: {refusal}") from refusal

    async def aclose(self) -> None:
        """Close the connection; messages in flight fail with UnavailableError. Closing twice is fine."""
        await self._connector.aclose()

    def _ready(self) -> Coroutine[Any, Any, RabbitMQConnection]:
        return self._connector.ready(self._declarations if self._declare else ())

    async def _deliver(self, window: Sequence[Publication], results: BatchResults) -> None:
        """Set the result of every message, or raise UnavailableError for the pending ones."""
        publications, one_by_one = list(window), False
        while publications:
            connection = await self._ready()
            batch = self._with_queues(connection, publications) or await self._with_new_queues(
                connection, publications, results
            )
            batch = batch[:1] if one_by_one else batch
            await self._unconfirmed.acquire(len(batch))
            try:
                if batch and connection.lost is None:  # it may be lost while this waited for the window
                    with connection.waiting:
                        await self._publish(connection, batch, results)
            except ChannelRefused as refusal:
                if len(batch) == 1:
                    self._fail_refused(connection, batch[0], refusal, publications, results)
                one_by_one = len(batch) > 1
            finally:
                self._unconfirmed.release(len(batch))
            publications = results.pending(publications)

    async def _publish(
        self, connection: RabbitMQConnection, publications: Sequence[Publication], results: BatchResults
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

    def _with_queues(self, connection: RabbitMQConnection, publications: Sequence[Publication]) -> list[Publication]:
        """The messages whose queue exists; those for the default exchange may need a queue that is not declared yet."""
        if not self._declare:
            return list(publications)
        return [
            publication
            for publication in publications
            if publication.exchange != ""
            or publication.routing_key in self._queues
            or publication.routing_key in connection.queues
        ]

    async def _with_new_queues(
        self, connection: RabbitMQConnection, publications: Sequence[Publication], results: BatchResults
    ) -> list[Publication]:
        """Declare missing queues, and return the messages for them: some at a time, so that a lost connection does not
        undo the work for all of them."""
        names = list(dict.fromkeys(publication.routing_key for publication in publications))[:NEW_QUEUES]
        self._declaring += 1
        try:
            with connection.waiting:
                refused = await _declare_queues(connection, names, self._new_queues)
        finally:
            self._declaring -= 1
        for publication in publications:
            if (error := refused.get(publication.routing_key)) is not None:
                failure = _unavailable(error)
                is_of_queue = connection.lost is None and connection.blocked is None
                results.set(publication.position, _of_key(publication, failure) if is_of_queue else failure)
        return self._with_queues(connection, results.pending(publications))

    def _fail_refused(
        self,
        connection: RabbitMQConnection,
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
            for one in publications:
                if one.exchange == culprit.exchange and not refusal.is_of_topic:
                    results.set(one.position, error)
                elif one.exchange == culprit.exchange and one.routing_key == culprit.routing_key:
                    results.set(one.position, _of_key(one, error))
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
            error = UnavailableError(f"{address!r} is not an address of RabbitMQ; use RabbitMQTransport.to(…)")
            results.set(position, error)
            continue
        try:
            key = address.key_for(outgoing.message)
        except PermanentError as refusal:
            results.set(position, refusal)
            continue
        publications.append(Publication(position, outgoing, address.exchange, key))
    return publications


def _of_key(publication: Publication, error: UnavailableError) -> UnavailableError:
    """The error of a message whose queue or topic cannot be used. If the destination has a routing key for each of
    several events, the others are available: then it is an error of this message, which is deferred by itself."""
    address = publication.outgoing.address
    is_only_key = isinstance(address, RabbitMQAddress) and address.fixed_key is not None
    return error if is_only_key else NackedError(str(error))


def _unavailable(error: SendError | ConfigurationError) -> UnavailableError:
    return error if isinstance(error, UnavailableError) else UnavailableError(str(error))


async def _declare_queues(connection: RabbitMQConnection, names: Iterable[str], kind: QueueType) -> _QueueErrors:
    """Declare durable queues of these names, each once per connection and several at a time; returns the errors
    of those that could not be declared. Raises UnavailableError."""
    refused: _QueueErrors = {}
    # The broker would confirm a second declaration before the queue is ready, and nack its first message.
    async with connection.declaring_queues:
        left: _QueuesLeft = deque((name, None) for name in names if name not in connection.queues)
        await asyncio.gather(
            *(_declare_in_turn(connection, left, kind, refused) for _ in range(min(CHANNELS, len(left))))
        )
    return refused


async def _declare_in_turn(
    connection: RabbitMQConnection, left: _QueuesLeft, kind: QueueType, refused: _QueueErrors
) -> None:
    """Declare one after another over one channel, and over a new one when the broker closed it."""
    while left:
        async with connection.channel() as channel:
            while left and channel.failure is None:
                name, second = left.popleft()
                try:
                    again = await declare(channel, [second or Queue(name=name, type=kind)], connection.existing)
                except (ConfigurationError, UnavailableError) as error:
                    refused[name] = error
                    continue
                left.extend((name, other) for other in again)
                if not again:
                    connection.queues.add(name)


async def _delete_queue(connection: RabbitMQConnection, name: str) -> None:
    async with connection.channel() as channel:
        await channel.call(channel.raw.queue_delete, queue=name)
