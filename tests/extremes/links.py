"""A link to a server on a thread of its own: slow, silent in one direction, reset, or losing single messages.

It knows where the messages of AMQP and of PostgreSQL's protocol begin and end, so that it can lose one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any, Literal

from tests.integration.rabbitmq.proxy import Proxy

_CHUNK = 2048
_AMQP_HEADER = 7
_AMQP_METHOD = b"\x01"
_BASIC_ACK = b"\x00\x3c\x00\x50"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How bytes pass, in both directions unless it says otherwise."""

    delay: float = 0.0
    """Seconds before each chunk."""
    rate: float = 0.0
    """Bytes per second; 0: no limit."""
    slice: int = 1 << 16
    """Bytes per write."""
    hole: Literal["", "there", "back", "both"] = ""
    """Hold back everything to the server, everything from it, or both."""


HEALTHY = Condition()


def amqp_frame(data: bytes) -> int:
    """Return how many bytes the first frame has, 0 if it is not complete."""
    size = _AMQP_HEADER + int.from_bytes(data[3:_AMQP_HEADER]) + 1
    return size if len(data) >= max(size, _AMQP_HEADER) else 0


def is_confirm(frame: bytes) -> bool:
    return frame[:1] == _AMQP_METHOD and frame[_AMQP_HEADER : _AMQP_HEADER + 4] == _BASIC_ACK


def postgres_message(data: bytes) -> int:
    """Return how many bytes the first message has, 0 if it is not complete."""
    if data[:1] == b"N" and data[1:2] != b"\x00":  # the answer to a request for TLS, not a notice
        return 1
    size = 1 + int.from_bytes(data[1:5])
    return size if len(data) >= max(size, 5) else 0


def postgres_request(data: bytes) -> int:
    """Return how many bytes the first message of a client has, 0 if it is not complete."""
    if data[:1] != b"\x00":
        return postgres_message(data)
    size = int.from_bytes(data[:4])  # what opens a session has no type
    return size if len(data) >= max(size, 4) else 0


def is_commit_request(message: bytes) -> bool:
    return message[:1] == b"Q" and message[5:] == b"COMMIT\x00"


def is_commit_reply(message: bytes) -> bool:
    return message[:1] == b"C" and message[5:] == b"COMMIT\x00"


def is_settlement(message: bytes) -> bool:
    """Return whether it is the row that answers a settlement; the server sends it after the commit."""
    return message[:1] == b"D" and message[5:7] == b"\x00\x03"


@dataclass(slots=True)
class Loss:
    """Which messages of the server, or of its clients, to lose, and how many of them."""

    size: Callable[[bytes], int]
    chosen: Callable[[bytes], bool]
    left: int = 0
    resets: bool = False
    """The connection ends where the message was."""
    of_clients: bool = False


class _ConditionedProxy(Proxy):
    def __init__(self, port: int, loss: Loss | None) -> None:
        super().__init__(port)
        self.condition = HEALTHY
        self.loss = loss
        self.changed = asyncio.Event()
        self.held = 0

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, spoken: bool) -> None:
        buffered = b""
        with suppress(OSError):
            while data := await source.read(_CHUNK if self.condition.rate else 1 << 16):
                if self.loss is not None and spoken != self.loss.of_clients:
                    data, buffered, is_cut = self._without_lost(buffered + data, self.loss)
                    if is_cut:
                        return
                await self._pass(data, target, "back" if spoken else "there")

    async def _pass(self, data: bytes, target: asyncio.StreamWriter, direction: str) -> None:
        while self.condition.hole in (direction, "both"):
            self.held += len(data)
            await self.changed.wait()
        condition = self.condition
        if condition.delay:
            await asyncio.sleep(condition.delay)
        if condition.rate:
            await asyncio.sleep(len(data) / condition.rate)
        for first in range(0, len(data), condition.slice):
            target.write(data[first : first + condition.slice])
            await target.drain()
            if condition.slice == 1:
                await asyncio.sleep(0)

    @staticmethod
    def _without_lost(data: bytes, loss: Loss) -> tuple[bytes, bytes, bool]:
        """Return the complete messages without lost ones, the rest, and whether the connection ends."""
        kept = bytearray()
        while size := loss.size(data):
            message, data = data[:size], data[size:]
            if loss.left and loss.chosen(message):
                loss.left -= 1
                if loss.resets:
                    return bytes(kept), data, True
            else:
                kept += message
        return bytes(kept), data, False


class FaultyProxy:
    """The same for tests without an event loop."""

    def __init__(self, port: int, loss: Loss | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever)
        self._thread.start()
        self._link: _ConditionedProxy = self._run(self._open(port, loss))
        self.port = self._link.port

    @property
    def held(self) -> int:
        """Bytes that a hole has held back."""
        return self._link.held

    @contextmanager
    def condition(self, condition: Condition) -> Iterator[None]:
        """A condition of the link while the block is open."""
        self._run(self._change(condition))
        try:
            yield
        finally:
            self._run(self._change(HEALTHY))

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return self._link.connections

    @contextmanager
    def down(self) -> Iterator[None]:
        """Break every connection and refuse new ones while the block is open."""
        self._run(self._link.cut())
        try:
            yield
        finally:
            self._run(self._link.heal())

    def reset(self) -> None:
        """Break every connection; accept new ones."""
        self._run(self._link.reset())

    def forward_to(self, port: int) -> None:
        """Lead new connections to another server; those that are open stay where they are."""
        self._link.forward_to(port)

    def close(self) -> None:
        self._run(self._link.cut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self, port: int, loss: Loss | None) -> _ConditionedProxy:
        return await _ConditionedProxy(port, loss).__aenter__()

    async def _change(self, condition: Condition) -> None:
        self._link.condition = condition
        self._link.changed.set()
        self._link.changed = asyncio.Event()

    def _run(self, awaited: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(awaited, self._loop).result(60)
