"""The stream of a drill on Redis, which the groups of both readers receive from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pillarbox.core.errors import UnavailableError
from pillarbox.core.source import Source
from pillarbox.plugins import DrillQueue, Reader
from pillarbox.settings.tls import tls_grouped
from pillarbox.transports.redis.connection import ErrorReply, RedisConnector
from pillarbox.transports.redis.plugin import RedisAddress, RedisEndpoint
from pillarbox.transports.redis.properties import ReceivedEntry
from pillarbox.transports.redis.scripts import ConsumerStreams
from pillarbox.transports.redis.source import RedisSource
from pillarbox.transports.redis.transport import RedisTransport

READERS: tuple[Reader, ...] = ("audit", "work")
PREFETCH = 50
PAGE = 1000


class RedisDrillQueue(DrillQueue):
    """A stream, with the streams of its two consumer groups. Redis creates each with its first entry."""

    def __init__(self, url: str, options: Mapping[str, Any], name: str) -> None:
        given = tls_grouped(options)
        self._url, self._name = url, name
        self._limits: dict[str, Any] = {"connect_timeout": given["connect_timeout"], "tls": given.get("tls")}
        self._reply_timeout = given["send_timeout"]
        self.transport = RedisTransport(url, **given)
        self.address = RedisAddress(stream=name)
        self._connector = RedisConnector(
            RedisEndpoint.parse(url, given.get("tls")),
            connect_timeout=given["connect_timeout"],
            reply_timeout=self._reply_timeout,
            what="drill",
        )

    @property
    def names(self) -> Sequence[str]:
        return [f"stream {name}" for name in self._streams()]

    def source(self, reader: Reader) -> Source:
        return RedisSource(
            self._url,
            stream=self._name,
            group=reader,
            prefetch=PREFETCH,
            claim_after="3s",
            check_interval="500ms",
            reply_timeout=self._reply_timeout,
            **self._limits,
        )

    async def existing(self) -> Sequence[str]:
        return [f"stream {name}" for name in self._streams() if await self._call("EXISTS", name)]

    async def create(self) -> None:
        """Do nothing but connect: the first entry creates a stream."""
        await self.transport.ping()

    async def drop(self) -> None:
        await self._call("UNLINK", *self._streams())

    async def stored(self) -> Sequence[str]:
        found: list[str] = []
        after = "-"
        while page := await self._call("XRANGE", self._name, after, "+", "COUNT", str(PAGE)):
            found += [str(ReceivedEntry(self._name, entry_id, fields).text("id")) for entry_id, fields in page]
            after = f"({page[-1][0].decode()}"
        return found

    async def aclose(self) -> None:
        await self.transport.aclose()
        await self._connector.aclose()

    def _streams(self) -> list[str]:
        found = [self._name]
        for reader in READERS:
            streams = ConsumerStreams(self._name, reader)
            found += [streams.retry, streams.quarantine, streams.delayed, streams.due]
        return [*found, ConsumerStreams(self._name, READERS[0]).dead]

    async def _call(self, command: str, *arguments: str) -> Any:
        connection = await self._connector.ready()
        try:
            return await connection.call(command, *arguments)
        except ErrorReply as refusal:
            raise UnavailableError(f"{command} {arguments[0]}: {refusal}") from refusal
