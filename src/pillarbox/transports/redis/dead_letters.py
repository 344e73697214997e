"""Dead letters on Redis: list the entries of a dead-letter stream, and move them back.

A stream can be read without taking anything from it. So listing changes nothing, and a dead letter leaves its stream in
the same step in which it arrives in another. If two operators move the same dead letter, one of them is told that it is
gone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pillarbox.admin.broker_dead_letters import BrokerDeadLetter, legible
from pillarbox.cloudevents import id_and_type
from pillarbox.core.clock import Duration, parse_timestamp
from pillarbox.core.errors import NackedError, RejectedError, UnavailableError
from pillarbox.settings.tls import Tls
from pillarbox.transports.redis import scripts
from pillarbox.transports.redis.connection import Argument, ErrorReply, RedisConnector
from pillarbox.transports.redis.plugin import RedisEndpoint, RedisOptions
from pillarbox.transports.redis.properties import ATTEMPTS, LAST_FAILED_AT, QUEUE, REASON, ReceivedEntry

_PAGE = 100
"""Entries that are read at once."""


class RedisDeadLetters:
    """See `pillarbox.admin.broker_dead_letters.BrokerDeadLetters`. Connects on first use, and creates nothing.

    Raises ConfigurationError.
    """

    def __init__(
        self,
        url: str,
        *,
        reply_timeout: Duration = "10s",
        connect_timeout: Duration = RedisOptions.connect_timeout,
        tls: Tls = None,
    ) -> None:
        self._endpoint = RedisEndpoint.parse(url, tls)
        self._connector = RedisConnector(
            self._endpoint, connect_timeout=connect_timeout, reply_timeout=reply_timeout, what="connection"
        )

    def __repr__(self) -> str:
        return f"<RedisDeadLetters at {self._endpoint}>"

    async def depth(self, queue: str) -> int | None:
        # An empty stream and a missing one both have the length 0.
        if not await self._call(queue, "EXISTS", queue):
            return None
        return int(await self._call(queue, "XLEN", queue))

    @asynccontextmanager
    async def receive(
        self, queue: str, *, limit: int, prefetch: int
    ) -> AsyncIterator[AsyncIterator[RedisReceivedDeadLetter]]:
        yield self._entries(queue, limit=limit, prefetch=prefetch)

    async def move(self, queue: str, entry_id: bytes, to: str) -> None:
        """Move a dead letter to another stream in one step; see `ReceivedDeadLetter.move`."""
        moved = await self._call(queue, "EVAL", scripts.REQUEUE, 2, queue, to, entry_id)
        if moved == 0:
            raise RejectedError("the dead letter was moved or deleted meanwhile")
        if moved < 0:
            raise RejectedError(f"there is no stream {to!r}")

    async def aclose(self) -> None:
        await self._connector.aclose()

    async def _entries(self, queue: str, *, limit: int, prefetch: int) -> AsyncIterator[RedisReceivedDeadLetter]:
        after, left, staying = "-", limit, 0
        while left > 0:
            page: list[Any] = await self._call(queue, "XRANGE", queue, after, "+", "COUNT", min(left, _PAGE))
            for entry_id, fields in page:
                if staying >= prefetch:
                    return
                yield (received := RedisReceivedDeadLetter(ReceivedEntry(queue, entry_id, fields), self))
                staying += received.stays
                after = f"({entry_id.decode()}"
            left -= len(page)
            if not page:
                return

    async def _call(self, queue: str, *command: Argument) -> Any:
        connection = await self._connector.ready()
        try:
            return await connection.call(*command)
        except ErrorReply as refusal:
            where = f"stream {queue!r} at {self._endpoint}"
            match refusal.code:
                case "OOM":
                    raise NackedError(f"{where}: Redis is out of memory: {refusal}") from refusal
                case "WRONGTYPE" | "NOPERM" | "ERR":
                    raise RejectedError(f"{where} cannot be read: {refusal}") from refusal
                case _:
                    raise UnavailableError(f"{where} cannot be read: {refusal}") from refusal


class RedisReceivedDeadLetter:
    """See `pillarbox.admin.broker_dead_letters.ReceivedDeadLetter`."""

    def __init__(self, entry: ReceivedEntry, dead_letters: RedisDeadLetters) -> None:
        self._entry = entry
        self._dead_letters = dead_letters
        self.stays = True

    @property
    def dead_letter(self) -> BrokerDeadLetter:
        return dead_letter_of(self._entry)

    async def move(self, queue: str) -> None:
        await self._dead_letters.move(self._entry.stream, self._entry.entry_id, queue)
        self.stays = False


def dead_letter_of(entry: ReceivedEntry) -> BrokerDeadLetter:
    """A dead letter from its fields. Raises nothing, whatever a producer wrote."""
    incoming = entry.incoming()
    event_id, event_type = id_and_type(incoming)
    return BrokerDeadLetter(
        queue=entry.stream,
        event_id=legible(event_id),
        event_type=legible(event_type),
        reason=legible(entry.text(REASON)),
        attempts=entry.count(ATTEMPTS),
        dead_lettered_at=parse_timestamp(entry.text(LAST_FAILED_AT)),
        original_queue=entry.text(QUEUE) or None,
        delivery_count=0,
        content_type=legible(incoming.content_type),
        size=len(entry.body),
        body=entry.body,
    )
