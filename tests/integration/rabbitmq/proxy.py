"""A TCP proxy in front of a broker, to cut, to silence and to slow down the way there."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from types import TracebackType
from typing import Self

_NARROW = 2048


class Proxy:
    """Listens on its own port and forwards bytes without parsing them."""

    def __init__(self, port: int, *, rate: float | None = None, reply_rate: float | None = None) -> None:
        """`rate`, `reply_rate`: bytes per second forwarded to the broker, and from it; the rest stays in the buffers of
        the sender."""
        self._target = ("127.0.0.1", port)
        self._rate = rate
        self._reply_rate = reply_rate
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._speaking = asyncio.Event()
        self._speaking.set()
        self.port = 0
        self.accepted = 0
        """How many connections were made in all."""

    async def __aenter__(self) -> Self:
        await self.heal()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.cut()

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._ends) // 2

    async def heal(self) -> None:
        """Let connections through, on the same port as before."""
        self._speaking.set()
        if self._server is None:
            listening = socket.create_server(("127.0.0.1", self.port))
            if self._rate:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _NARROW)
            limit = _NARROW if self._rate else 1 << 16
            self._server = await asyncio.start_server(self._connected, sock=listening, limit=limit)
            self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Break every connection and refuse new ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        await self.reset()

    async def reset(self) -> None:
        """Break every connection; accept new ones."""
        self._speaking.set()
        for end in self._ends:
            end.transport.abort()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def forward_to(self, port: int, *, host: str = "127.0.0.1") -> None:
        """Lead new connections to another server; those that are open stay where they are."""
        self._target = (host, port)

    def silence(self) -> None:
        """Hold back all bytes of the broker from now on; bytes to the broker still arrive."""
        self._speaking.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            broker_reader, broker_writer = await asyncio.open_connection(*self._target)
            there = asyncio.create_task(self._pump(reader, broker_writer, spoken=False))
            back = asyncio.create_task(self._pump(broker_reader, writer, spoken=True))
            self.accepted += 1
            self._ends |= {writer, broker_writer}
            self._tasks |= {there, back}
            await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
            for end in (writer, broker_writer):
                end.transport.abort()
            await asyncio.wait({there, back})
            self._ends -= {writer, broker_writer}
            self._tasks -= {there, back}
        writer.transport.abort()  # the target may refuse

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, spoken: bool) -> None:
        with suppress(OSError):
            rate = self._reply_rate if spoken else self._rate
            while data := await source.read(_NARROW if rate else 1 << 16):
                if spoken:
                    await self._speaking.wait()
                if rate:
                    await asyncio.sleep(len(data) / rate)
                target.write(data)
                await target.drain()
