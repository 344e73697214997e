"""A Redis stream as a source: consumers of one group share its entries.

Nothing reconnects in the background: after a connection is lost, `receive` raises UnavailableError, and the next
`receive` starts a new session. `scripts` has the streams for retries, quarantine and dead letters.
"""

from __future__ import annotations

import os
import socket
from uuid import uuid4

from pillarbox.core.clock import Duration
from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.core.source import Incoming
from pillarbox.settings.tls import Tls
from pillarbox.transports.redis.connection import RedisConnector, positive
from pillarbox.transports.redis.plugin import DEFAULT_GROUP, RedisEndpoint, RedisOptions
from pillarbox.transports.redis.scripts import CONSUMER_PREFIX, QUARANTINE, QUARANTINE_AFTER, ConsumerStreams
from pillarbox.transports.redis.session import ClaimedEntry, RedisConsumerSession, SessionOptions


class RedisSource:
    """See `pillarbox.core.source.Source`. Makes no connection until something is received.

    `group` is the consumer group, created at the beginning of the stream; `prefetch` limits the messages in flight.
    A message of a crashed consumer is delivered to another after `claim_after`; every `check_interval` the source looks
    for such messages and for retries that are due. Raises ConfigurationError.
    """

    def __init__(
        self,
        url: str,
        *,
        stream: str,
        group: str = DEFAULT_GROUP,
        prefetch: int = 10,
        claim_after: Duration = "30s",
        check_interval: Duration = "1s",
        reply_timeout: Duration = "10s",
        connect_timeout: Duration = RedisOptions.connect_timeout,
        tls: Tls = None,
    ) -> None:
        if type(prefetch) is not int or prefetch < 1:
            raise ConfigurationError(f"prefetch is {prefetch!r}; it must be an integer of at least 1")
        self._endpoint = RedisEndpoint.parse(url, tls)
        self._streams = ConsumerStreams(stream, group)
        self._reader, self._control = (
            RedisConnector(self._endpoint, connect_timeout=connect_timeout, reply_timeout=reply_timeout, what="source")
            for _ in range(2)
        )
        self._options = SessionOptions(
            streams=self._streams,
            consumer=f"{CONSUMER_PREFIX}{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}",
            prefetch=prefetch,
            claim_after=positive("claim_after", claim_after),
            check_interval=positive("check_interval", check_interval),
            reply_timeout=self._control.reply_timeout,
        )
        self._session: RedisConsumerSession | None = None
        self._deleted = 0

    def __repr__(self) -> str:
        return f"<RedisSource {self._streams.work!r}, group {self._streams.group!r} at {self._endpoint}>"

    @property
    def deleted(self) -> int:
        """Messages that were deleted from the stream after their delivery and before their acknowledgement, as far as
        this source has noticed. Each is logged as a WARNING of `pillarbox.redis`."""
        return self._deleted + (0 if self._session is None else self._session.deleted)

    async def receive(self) -> RedisDelivery:
        session = await self._opened()
        return RedisDelivery(await session.next(), session, self._streams)

    async def connect(self) -> None:
        await self._opened()

    async def aclose(self) -> None:
        """Close the connections; messages in flight are delivered again at once. Closing twice is fine."""
        session, self._session = self._session, None
        if session is not None:
            await session.end(UnavailableError(f"the source of {self._streams.work!r} at {self._endpoint} is closed"))
            self._deleted += session.deleted
        await self._reader.aclose()
        await self._control.aclose()

    async def _opened(self) -> RedisConsumerSession:
        if (session := self._session) is not None:
            if session.failure is None:
                return session
            self._session = None
            self._deleted += session.deleted
        reader, control = await self._reader.ready(), await self._control.ready()
        session = RedisConsumerSession(reader, control, self._options)
        try:
            await session.start()
        except BaseException as error:
            session.abort(UnavailableError(f"the session was not started: {type(error).__name__}"))
            self._deleted += session.deleted
            raise
        self._session = session
        return session


class RedisDelivery:
    """See `pillarbox.core.source.Delivery`."""

    def __init__(self, claimed: ClaimedEntry, session: RedisConsumerSession, streams: ConsumerStreams) -> None:
        self._claimed = claimed
        self._session = session
        self._streams = streams
        self._incoming: Incoming | None = None

    @property
    def incoming(self) -> Incoming:
        # Not a cached_property, which pyright does not accept as the property of a protocol.
        if self._incoming is None:
            self._incoming = self._claimed.entry.incoming(stream=self._streams.work)
        return self._incoming

    @property
    def quarantined(self) -> bool:
        return self._claimed.number == QUARANTINE or self._claimed.deliveries > QUARANTINE_AFTER

    @property
    def crashes(self) -> int:
        before = 0 if self._claimed.number == QUARANTINE else QUARANTINE_AFTER
        return max(0, self._claimed.deliveries - 1 - before)

    async def ack(self) -> None:
        await self._session.ack(self._claimed)

    async def retry(self, *, delay: float, reason: str, counted: bool = True) -> None:
        await self._fail(self._streams.delayed, reason, counted=counted, delay=delay)

    async def reject(self, reason: str) -> None:
        await self._fail(self._streams.dead, reason, counted=True, delay=None)

    async def _fail(self, to: str, reason: str, *, counted: bool, delay: float | None) -> None:
        # A requeued dead letter goes to the group that rejected it, and to no other.
        fields = self._claimed.entry.failed(
            self.incoming, queue=self._streams.retry, group=self._streams.group, reason=reason, counted=counted
        )
        await self._session.move(self._claimed, to, fields, delay=delay)
