"""NATS JetStream as a transport: connects on demand, publishes whole batches, returns one result per message.

Nothing reconnects in the background: a lost connection fails all unconfirmed messages, and the next `send` opens a new
one, to any of the servers, and declares the streams again. JetStream recognises messages that it has stored already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from pillarbox.core.clock import Duration
from pillarbox.core.errors import ConfigurationError, PermanentError, SendError, UnavailableError
from pillarbox.core.transport import Address, Outgoing, Pace, SendResult
from pillarbox.settings.shared import SEND_TIMEOUT
from pillarbox.settings.tls import Tls
from pillarbox.transports.nats.connection import NatsConnection, NatsConnector
from pillarbox.transports.nats.headers import ApiError
from pillarbox.transports.nats.plugin import NatsAddress, NatsEndpoint, NatsOptions, positive
from pillarbox.transports.nats.publisher import NatsBatchResults, NatsPublication, NatsPublishedBatch
from pillarbox.transports.nats.topology import STREAM_NOT_FOUND, Stream, check_streams

BATCH = 500
"""Messages in one batch."""
BATCH_BYTES = 1024 * 1024
"""Bytes in one batch."""
NEW_STREAMS = 10
"""Streams that are created at once."""


class NatsTransport:
    """A NATS server or cluster with JetStream. Makes no connection until something is sent, pinged or declared.

    `url` is `nats://user:password@host:port,host:port`, or `tls://…`, or `nats://token@…`; `window` limits the
    unconfirmed messages; without `declare`, sending creates no stream. Raises ConfigurationError.
    """

    address_type: type[Address] = NatsAddress
    to = NatsAddress
    """`NatsTransport.to(subject="orders.{event_type}", expected_stream="ORDERS")`: an address."""

    def __init__(
        self,
        url: str,
        *,
        streams: Sequence[Stream] = NatsOptions.streams,
        window: int = NatsOptions.window,
        declare: bool = NatsOptions.declare,
        replicas: int = NatsOptions.replicas,
        send_timeout: Duration = SEND_TIMEOUT,
        connect_timeout: Duration = NatsOptions.connect_timeout,
        tls: Tls = None,
    ) -> None:
        NatsOptions(window=window, declare=declare, replicas=replicas, connect_timeout=connect_timeout)  # checks
        self._endpoint = NatsEndpoint.parse(url, tls)
        self._streams = check_streams(streams)
        self._declare = declare
        self._replicas = replicas
        self._send_timeout = positive("send_timeout", send_timeout)
        self._window = window
        batch = min(BATCH, window)
        self._pace = Pace(
            batch_size=batch,
            concurrency=max(1, window // batch),
            in_order=True,
            bytes=BATCH_BYTES,
            progress=lambda: self._connector.progress,
        )
        self._connector = NatsConnector(
            self._endpoint, connect_timeout=connect_timeout, reply_timeout=send_timeout, what="transport"
        )
        self._creating = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<NatsTransport at {self._endpoint}>"

    @property
    def pace(self) -> Pace:
        return self._pace

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        """The subject of that name, for which the first send creates a stream unless one has it."""
        return {event_type: NatsAddress()}

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        """Publish everything at once and wait for the acknowledgements. Raises UnavailableError once closed."""
        self._connector.check_open()
        results = NatsBatchResults(len(batch))
        publications = _addressed(batch, results)
        for start in range(0, len(publications), self._window):
            try:
                await self._deliver(publications[start : start + self._window], results)
            except (UnavailableError, ConfigurationError) as error:
                # The rest must not be sent, over a new connection or this: it would overtake unconfirmed messages.
                results.fail(publications[start:], _unavailable(error))
                break
        return results.as_list()

    async def ping(self) -> None:
        """Connect, declare and wait for a reply. Raises UnavailableError, also if a stream differs."""
        try:
            connection = await self._ready()
        except ConfigurationError as error:
            raise _unavailable(error) from error
        try:
            await connection.round_trip()
        except UnavailableError as error:
            connection.abort(error)
            raise

    async def declare_topology(self) -> None:
        """Declare every configured stream, whatever `declare` says. Raises UnavailableError, and ConfigurationError
        with the difference if one exists that is not what the configuration says."""
        connection = await self._connector.ready()
        await connection.streams.declare(self._streams)

    async def delete_stream(self, name: str) -> None:
        """Delete a stream with its messages; succeeds also if there is none. Raises what `declare_topology` raises."""
        connection = await self._ready()
        try:
            await connection.request(f"STREAM.DELETE.{name}")
        except ApiError as error:
            if error.code != STREAM_NOT_FOUND:
                raise UnavailableError(f"stream {name!r} at {self._endpoint} cannot be deleted: {error}") from error

    async def aclose(self) -> None:
        """Close the connection; messages in flight fail with UnavailableError. Closing twice is fine."""
        await self._connector.aclose()

    async def _ready(self) -> NatsConnection:
        return await self._connector.ready(self._prepare)

    async def _prepare(self, connection: NatsConnection) -> None:
        if self._declare:
            await connection.streams.declare(self._streams)

    async def _deliver(self, publications: Sequence[NatsPublication], results: NatsBatchResults) -> None:
        """Set the result of every message, or raise for the pending ones."""
        connection = await self._ready()
        if self._declare:
            await self._provide(connection, publications, results)
            publications = results.pending(publications)
        connection.check()
        batch = NatsPublishedBatch(connection, results, publications)
        await batch.publish(self._send_timeout)
        if batch.without_stream:
            connection.declared = False
            connection.streams.forget()
        if batch.unconfirmed is not None:
            raise batch.unconfirmed

    async def _provide(
        self, connection: NatsConnection, publications: Sequence[NatsPublication], results: NatsBatchResults
    ) -> None:
        """Create the streams that are missing; sets the results of messages whose stream cannot be created."""
        new = {one.subject: one.creates for one in publications}
        if all(connection.streams.has(subject) for subject in new):
            return
        errors: dict[str, ConfigurationError | UnavailableError] = {}

        async def provide(subject: str, creates: bool) -> None:
            try:
                await connection.streams.provide(subject, replicas=self._replicas if creates else None)
            except (ConfigurationError, UnavailableError) as error:
                errors[subject] = error

        async with self._creating:
            missing = sorted((one, creates) for one, creates in new.items() if not connection.streams.has(one))
            for start in range(0, len(missing), NEW_STREAMS):
                await asyncio.gather(*(provide(*one) for one in missing[start : start + NEW_STREAMS]))
        connection.check()
        for publication in publications if errors else ():
            if (error := errors.get(publication.subject)) is not None:
                results.set(publication.position, publication.unavailable(str(error)))


def _addressed(batch: Sequence[Outgoing], results: NatsBatchResults) -> list[NatsPublication]:
    """The messages with their subjects; sets the results of those that have none."""
    publications: list[NatsPublication] = []
    for position, outgoing in enumerate(batch):
        address = outgoing.address
        if not isinstance(address, NatsAddress):
            error = UnavailableError(f"{address!r} is not an address of NATS; use NatsTransport.to(…)")
            results.set(position, error)
            continue
        try:
            subject = address.fixed_subject or address.subject_for(outgoing.message)
        except PermanentError as refusal:
            results.set(position, refusal)
            continue
        only = address.fixed_subject is not None
        publications.append(
            NatsPublication(position, outgoing, subject, address.expected_stream, address.creates, only)
        )
    return publications


def _unavailable(error: SendError | ConfigurationError) -> UnavailableError:
    return error if isinstance(error, UnavailableError) else UnavailableError(str(error))
