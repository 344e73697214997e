"""The stream of a drill on NATS, which the groups of both readers receive from."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from pillarbox.core.errors import UnavailableError
from pillarbox.core.source import Source
from pillarbox.plugins import DrillQueue, Reader
from pillarbox.settings.tls import tls_grouped
from pillarbox.transports.nats.connection import NatsConnector
from pillarbox.transports.nats.headers import ApiError, incoming_of, read_block
from pillarbox.transports.nats.plugin import NatsAddress, NatsEndpoint, NatsOptions
from pillarbox.transports.nats.source import NatsSource
from pillarbox.transports.nats.topology import STREAM_NOT_FOUND, ConsumerNames, Stream
from pillarbox.transports.nats.transport import NatsTransport

READERS: tuple[Reader, ...] = ("audit", "work")
PREFETCH = 50
PAGE = 100
"""Messages that are read at once."""


class NatsDrillQueue(DrillQueue):
    """A stream with one subject of the same name, and the streams of its two groups."""

    def __init__(self, url: str, options: Mapping[str, Any], name: str) -> None:
        self._url, self._name = url, name
        self._replicas = options.get("replicas", NatsOptions.replicas)
        self._stream = Stream(name=name, subjects=[name], replicas=self._replicas, max_age="2 days")
        self._limits: dict[str, Any] = {
            "connect_timeout": options["connect_timeout"],
            "tls": tls_grouped(options).get("tls"),
        }
        self._reply_timeout = options["send_timeout"]
        self.transport = self._broker = NatsTransport(
            url,
            streams=[self._stream],
            declare=False,
            window=options["window"],
            send_timeout=self._reply_timeout,
            **self._limits,
        )
        self.address = NatsAddress(subject=name)
        self._connector = NatsConnector(
            NatsEndpoint.parse(url, self._limits["tls"]),
            connect_timeout=options["connect_timeout"],
            reply_timeout=self._reply_timeout,
            what="drill",
        )

    @property
    def names(self) -> Sequence[str]:
        return [f"stream {name}" for name in self._streams()]

    def source(self, reader: Reader) -> Source:
        return NatsSource(
            self._url,
            subject=self._name,
            stream=self._name,
            group=reader,
            prefetch=PREFETCH,
            ack_wait="5s",
            replicas=self._replicas,
            reply_timeout=self._reply_timeout,
            **self._limits,
        )

    async def existing(self) -> Sequence[str]:
        connection = await self._connector.ready()
        return [f"stream {name}" for name in self._streams() if await connection.streams.read(name) is not None]

    async def create(self) -> None:
        await self._broker.declare_topology()

    async def drop(self) -> None:
        connection = await self._connector.ready()
        for name in self._streams():
            try:
                await connection.request(f"STREAM.DELETE.{name}")
            except ApiError as error:
                if error.code != STREAM_NOT_FOUND:
                    raise UnavailableError(f"stream {name!r} cannot be deleted: {error}") from error

    async def stored(self) -> Sequence[str]:
        connection = await self._connector.ready()
        config = await connection.streams.read(self._name)
        last = int(config["state"]["last_seq"]) if config is not None else 0
        found: list[str] = []
        for first in range(1, last + 1, PAGE):
            found += await asyncio.gather(*(self._stored(n) for n in range(first, min(first + PAGE, last + 1))))
        return found

    async def _stored(self, sequence: int) -> str:
        """The id of the event with a sequence; nothing is deleted from the stream of a drill."""
        connection = await self._connector.ready()
        try:
            answer = await connection.request(f"STREAM.MSG.GET.{self._name}", {"seq": sequence})
        except ApiError as error:
            raise UnavailableError(f"message {sequence} of stream {self._name!r} cannot be read: {error}") from error
        return str(incoming_of(read_block(b64decode(answer["message"]["hdrs"])), b"").event_id)

    async def aclose(self) -> None:
        await self.transport.aclose()
        await self._connector.aclose()

    def _streams(self) -> list[str]:
        around = (ConsumerNames(stream=self._name, group=reader) for reader in READERS)
        return [self._name, *(stream for one in around for stream in (one.retry_stream, one.dead_stream))]
