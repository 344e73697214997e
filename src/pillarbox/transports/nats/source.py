"""NATS JetStream as a source: a durable pull consumer, and streams beside it for retries and dead letters.

A retry and a dead letter are copies with counts in their headers; the original is acked after JetStream has stored the
copy. So the number of deliveries that JetStream counts is that of consumers which crashed or lost their connection, and
all counts survive restarts. A copy that is not due is sent back by whichever consumer of the group receives it, with
the rest of its delay; when it is due, it moves to the subject of due retries.

A message of another producer may be so large that no copy with counts fits into the maximum of the server. It stays
where it is: a retry sends it back with the delay, and the deliveries that JetStream counts are its attempts.

Nothing reconnects in the background: after a connection is lost, `receive` raises UnavailableError, and the next
`receive` opens a new connection and releases the messages that were in flight over the lost one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from pillarbox.core.clock import Duration, timestamp
from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.core.source import Incoming
from pillarbox.settings.tls import Tls
from pillarbox.transports.nats.connection import NatsConnection, NatsConnector
from pillarbox.transports.nats.headers import (
    ATTEMPTS,
    DEFERRALS,
    DUE,
    EVENT_ID,
    FIRST_FAILED_AT,
    LAST_FAILED_AT,
    MAX_HEADERS,
    REASON,
    SUBJECT,
    Copy,
    PulledMessage,
    copied,
    encode_value,
    incoming_of,
)
from pillarbox.transports.nats.plugin import NatsEndpoint, NatsOptions, at_least_one, positive
from pillarbox.transports.nats.publisher import RESERVE
from pillarbox.transports.nats.pull_consumer import MAX_PENDING, UNLIMITED, ensure_consumer
from pillarbox.transports.nats.session import NatsConsumerSession
from pillarbox.transports.nats.topology import ConsumerNames, check_stream_name, check_subject

_QUARANTINE_AFTER = 2
"""Deliveries without acknowledgement after which a message is quarantined."""
_MAX_DELIVERIES = 100
"""Deliveries of a message that is too large for a copy; further ones count as crashes."""
_MAX_REASON_BYTES = 1000


class NatsSource:
    """See `pillarbox.core.source.Source`. Makes no connection until something is received.

    `subject` may contain wildcards; its stream is looked up unless `stream` names it, and created for a subject which
    no stream has. Consumers of one `group` share the messages. `prefetch` limits the messages in flight; JetStream
    delivers a message again that a crashed consumer did not acknowledge within `ack_wait`, which a running consumer
    extends as long as it handles the message. Without `declare`, receiving creates nothing. Raises ConfigurationError.
    """

    def __init__(
        self,
        url: str,
        *,
        subject: str,
        group: str = "pillarbox",
        stream: str = "",
        prefetch: int = 10,
        ack_wait: Duration = "30s",
        replicas: int = NatsOptions.replicas,
        declare: bool = NatsOptions.declare,
        reply_timeout: Duration = "10s",
        connect_timeout: Duration = NatsOptions.connect_timeout,
        tls: Tls = None,
    ) -> None:
        NatsOptions(replicas=replicas, declare=declare, connect_timeout=connect_timeout)  # checks
        self._endpoint = NatsEndpoint.parse(url, tls)
        check_subject("the subject", subject, wildcards=True)
        check_stream_name("the group", group)
        if stream != "":
            check_stream_name("the stream", stream)
        self._subject, self._group, self._stream = subject, group, stream
        self._prefetch = at_least_one("prefetch", prefetch)
        self._ack_wait = positive("ack_wait", ack_wait)
        self._replicas, self._declare = replicas, declare
        self._connector = NatsConnector(
            self._endpoint, connect_timeout=connect_timeout, reply_timeout=reply_timeout, what="source"
        )
        self._names: ConsumerNames | None = None
        self._session: NatsConsumerSession | None = None

    def __repr__(self) -> str:
        return f"<NatsSource {self._subject!r}, group {self._group!r} at {self._endpoint}>"

    async def receive(self) -> NatsDelivery:
        while True:
            session = await self._opened()
            delivery = NatsDelivery(await session.next(), session)
            if not delivery.must_quarantine:
                return delivery
            try:
                await delivery.quarantine()
            except asyncio.CancelledError:
                session.put_back(delivery.message)
                raise
            if delivery.quarantined:
                return delivery

    async def connect(self) -> None:
        await self._opened()

    async def aclose(self) -> None:
        """Close the connection; messages in flight are released to the group. Closing twice is fine."""
        if self._session is not None:
            await self._session.aclose()
        await self._connector.aclose()

    async def _opened(self) -> NatsConsumerSession:
        self._connector.check_open()
        session = before = self._session
        if session is None or session.failure is not None:
            connection = await self._connector.ready(self._prepare)
            if self._names is None:
                raise UnavailableError(f"{self!r} was not prepared")
            session = self._session = NatsConsumerSession(
                connection, self._names, self._group, prefetch=self._prefetch, ack_wait=self._ack_wait
            )
            if before is not None:
                session.release(before.abandoned)
        return session

    async def _prepare(self, connection: NatsConnection) -> None:
        name = self._stream or await self._find_stream(connection)
        config = await connection.streams.read(name)
        if config is None:
            raise UnavailableError(f"stream {name!r} at {self._endpoint} does not exist; create it")
        self._names = names = ConsumerNames(stream=name, group=self._group)
        if self._declare:
            for stream in names.streams(replicas=config["num_replicas"], storage=config["storage"]):
                existing = await connection.streams.read(stream.name)
                if existing is None:
                    await connection.streams.create(stream)
                elif {*existing["subjects"]} != {*stream.subjects} or existing["retention"] != stream.retention:
                    raise ConfigurationError(f"{stream.label} at {self._endpoint} belongs to something else; rename it")
        else:
            dead = await connection.streams.names(names.subject("dead"))
            if not dead or await connection.streams.read(dead[0]) is None:  # which raises if it has no leader
                raise UnavailableError(
                    f"no stream at {self._endpoint} has subject {names.subject('dead')!r}, for dead letters; create "
                    f"{names.dead_stream!r}, or set declare = true"
                )
        work = self._consumer(connection, name, self._group, self._subject)
        waits = [
            await work,
            await self._consumer(connection, names.retry_stream, "wait", names.subject("wait"), UNLIMITED),
            await self._consumer(connection, names.retry_stream, "ready", names.subject("ready")),
            await self._consumer(connection, names.retry_stream, "quarantine", names.subject("quarantine"), 1),
        ]
        self._ack_wait = min(waits)

    async def _consumer(
        self, connection: NatsConnection, stream: str, name: str, subject: str, max_pending: int = MAX_PENDING
    ) -> float:
        return await ensure_consumer(
            connection,
            stream,
            name,
            subject=subject,
            ack_wait=self._ack_wait,
            max_pending=max_pending,
            create=self._declare,
        )

    async def _find_stream(self, connection: NatsConnection) -> str:
        names = await connection.streams.names(self._subject)
        if len(names) > 1:
            raise ConfigurationError(f"streams {', '.join(names)} have a part of {self._subject!r}; name one: stream=…")
        if names:
            return names[0]
        if "*" in self._subject or ">" in self._subject or not self._declare:
            raise UnavailableError(
                f"no stream at {self._endpoint} has subject {self._subject!r}; create one, or start the relay first"
            )
        await connection.streams.provide(self._subject, replicas=self._replicas)
        return await self._find_stream(connection)


class NatsDelivery:
    """See `pillarbox.core.source.Delivery`."""

    def __init__(self, message: PulledMessage, session: NatsConsumerSession) -> None:
        self.message = message
        self._session = session
        self._headers = message.sent_headers()
        subject = message.first_subject(self._headers)
        self._incoming = incoming_of(self._headers, message.body, subject=subject, is_copy=message.kind != "work")
        self._stays = self._is_too_large()
        self._refused = False
        """Whether quarantine did not take it."""
        if self._stays:
            self._incoming = replace(self._incoming, attempts=self._incoming.attempts + message.delivered - 1)

    @property
    def incoming(self) -> Incoming:
        return self._incoming

    @property
    def quarantined(self) -> bool:
        if self._stays:
            return self.message.quarantined or self.message.delivered > _QUARANTINE_AFTER
        return self.message.quarantined or self._refused

    @property
    def crashes(self) -> int:
        if self._stays:
            return max(0, self.message.delivered - 1 - _MAX_DELIVERIES)
        if self._refused:
            return self.message.delivered - 1 - _QUARANTINE_AFTER
        return self.message.delivered - 1 if self.quarantined else 0

    @property
    def must_quarantine(self) -> bool:
        return not self.quarantined and self.message.delivered > _QUARANTINE_AFTER

    async def ack(self) -> None:
        self._session.settle(self.message)

    async def retry(self, *, delay: float, reason: str, counted: bool = True) -> None:
        if self._stays:
            self._session.send_back(self.message, delay)
            return
        due = f"{time.time() + delay:.3f}" if delay > 0 else None
        await self._move("ready" if due is None else "wait", self._failed(reason, counted=counted) | {DUE: due})

    async def reject(self, reason: str) -> None:
        await self._move("dead", self._failed(reason, counted=True) | {DUE: None})

    async def quarantine(self) -> None:
        """Move the message to quarantine, which delivers one message at a time. If that is not possible now, as when
        only acks make room in a full stream, the message is quarantined where it is."""
        session = self._session
        try:
            stored = await session.store_at_once(session.names.subject("quarantine"), self._copy(self._identity()))
        except UnavailableError:
            session.check()
            stored = False
        if stored:
            session.settle(self.message)
        else:
            self._refused = True

    async def _move(self, kind: Literal["wait", "ready", "dead"], changed: Mapping[str, str | None]) -> None:
        session = self._session
        session.check()
        await session.store(session.names.subject(kind), self._copy(changed))
        session.settle(self.message)

    def _copy(self, changed: Mapping[str, str | None]) -> Copy:
        return copied(self.message, self._headers, changed, self._session.max_payload)

    def _is_too_large(self) -> bool:
        """Whether a copy has no room for the headers of a retry."""
        message, limit = self.message, self._session.max_payload
        size = len(message.block or b"")
        if size <= MAX_HEADERS - RESERVE and size + len(message.body) <= limit - RESERVE:
            return False
        changed = self._failed("", counted=True) | {DUE: f"{time.time():.3f}"}
        return not copied(message, self._headers, changed, limit).complete

    def _failed(self, reason: str, *, counted: bool) -> dict[str, str | None]:
        incoming, now = self.incoming, timestamp(datetime.now(UTC))
        text = reason.encode("utf-8", "backslashreplace")[:_MAX_REASON_BYTES].decode("utf-8", "ignore")
        return self._identity() | {
            ATTEMPTS: str(incoming.attempts + counted),
            DEFERRALS: str(incoming.deferrals + (not counted)),
            REASON: encode_value(text),
            FIRST_FAILED_AT: self._headers.get(FIRST_FAILED_AT, now),
            LAST_FAILED_AT: now,
        }

    def _identity(self) -> dict[str, str | None]:
        """What a copy does not have by itself: another subject, and another message id."""
        incoming = self.incoming
        named: dict[str, str | None] = {SUBJECT: encode_value(_clean(incoming.destination))}
        if incoming.event_id is not None and EVENT_ID not in self._headers:
            named[EVENT_ID] = encode_value(_clean(incoming.event_id))
        return named


def _clean(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
