"""A link to a server on a thread of its own: slow, silent in one direction, reset, or losing single messages.

It knows where the messages of each protocol begin and end, so that it can lose one. Brokers of Kafka name their own
address to clients: the link puts its own there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Thread
from typing import Any, Literal

from tests.integration.rabbitmq.proxy import Proxy

_CHUNK = 2048
_AMQP_HEADER = 7
_AMQP_METHOD = b"\x01"
_BASIC_ACK = b"\x00\x3c\x00\x50"
_CRLF = b"\r\n"
_LOCALHOST = b"127.0.0.1"
_ENTRY_ID = re.compile(rb"\$\d+\r\n\d+-\d+\r\n")
_MARIADB_COMMIT = b"\x07\x00\x00\x00\x03COMMIT"
_REMEMBERED = 1 << 16


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


def is_notification(message: bytes) -> bool:
    return message[:1] == b"A"


def is_settlement(message: bytes) -> bool:
    """Return whether it is the row that answers a settlement; the server sends it after the commit."""
    return message[:1] == b"D" and message[5:7] == b"\x00\x03"


def mariadb_packet(data: bytes) -> int:
    """Return how many bytes the first packet has, 0 if it is not complete."""
    size = 4 + int.from_bytes(data[:3], "little")
    return size if len(data) >= size else 0


def is_mariadb_commit(sent: bytes) -> bool:
    return sent.endswith(_MARIADB_COMMIT)


def is_mariadb_settlement(sent: bytes) -> bool:
    """Return whether the last request is the COMMIT of a transaction that removes messages."""
    return is_mariadb_commit(sent) and b"DELETE m FROM " in sent.rpartition(b"START TRANSACTION")[2]


def _address(port: int) -> bytes:
    """Return host and port as Kafka's protocol writes them."""
    return _LOCALHOST + port.to_bytes(4)


def kafka_frame(data: bytes) -> int:
    """Return how many bytes the first frame has, 0 if it is not complete."""
    size = 4 + int.from_bytes(data[:4])
    return size if len(data) >= max(size, 4) else 0


def is_produce_reply(frame: bytes) -> bool:
    """Return whether it names a topic of a scene and no broker: those that confirm messages do."""
    return b"extremes-" in frame and _LOCALHOST not in frame


def nats_message(data: bytes) -> int:
    """Return how many bytes the first message of a server has, 0 if it is not complete."""
    head, end, _ = data.partition(_CRLF)
    if not end:
        return 0
    body = int(head.rpartition(b" ")[2]) + len(_CRLF) if head.startswith((b"MSG ", b"HMSG ")) else 0
    size = len(head) + len(_CRLF) + body
    return size if len(data) >= size else 0


def is_publish_ack(message: bytes) -> bool:
    return message.startswith(b"MSG ") and b'\r\n{"stream":' in message


def redis_reply(data: bytes) -> int:
    """Return how many bytes the first reply has, 0 if it is not complete."""
    head, end, _ = data.partition(_CRLF)
    if not end:
        return 0
    size, kind = len(head) + len(_CRLF), head[:1]
    if kind == b"$" and head != b"$-1":
        size += int(head[1:]) + len(_CRLF)
    elif kind in (b"*", b"%"):
        for _ in range(int(head[1:]) * (2 if kind == b"%" else 1)):
            if not (part := redis_reply(data[size:])):
                return 0
            size += part
    return size if len(data) >= size else 0


def is_entry_id(reply: bytes) -> bool:
    """Return whether it confirms an entry of a stream."""
    return _ENTRY_ID.fullmatch(reply) is not None


def http_response(data: bytes) -> int:
    """Return how many bytes the first response without a body has, 0 if it is not complete."""
    return data.find(2 * _CRLF) + 2 * len(_CRLF) if 2 * _CRLF in data else 0


def is_accepted(response: bytes) -> bool:
    return response.startswith(b"HTTP/1.1 204 ")


@dataclass(slots=True)
class Loss:
    """Which messages of the server, or of its clients, to lose, and how many of them."""

    size: Callable[[bytes], int]
    chosen: Callable[[bytes], bool] = bool
    left: int = 0
    resets: bool = False
    """The connection ends where the message was."""
    of_clients: bool = False
    names_address: bool = False
    """The server names its address in its messages."""
    replies_to: Callable[[bytes], bool] | None = None
    """Lose only what the server replies to such a request: the end of what this client has sent, without pipelining."""


_sent: ContextVar[bytearray] = ContextVar("_sent")
"""The end of what the client of a connection has sent."""


class _ConditionedProxy(Proxy):
    def __init__(self, port: int, loss: Loss | None) -> None:
        super().__init__(port)
        self._server_address = _address(port)
        self.condition = HEALTHY
        self.loss = loss
        self.changed = asyncio.Event()
        self.held = 0
        self.hampered = 0

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _sent.set(bytearray())
        await super()._connected(reader, writer)

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, spoken: bool) -> None:
        buffered, sent = b"", _sent.get()
        with suppress(OSError):
            while data := await source.read(_CHUNK if self.condition.rate else 1 << 16):
                if not spoken:
                    sent += data
                    del sent[:-_REMEMBERED]
                if self.loss is not None and spoken != self.loss.of_clients:
                    data, buffered, is_cut = self._without_lost(buffered + data, self.loss, bytes(sent))
                    if is_cut:
                        return
                    if self.loss.names_address:
                        data = data.replace(self._server_address, _address(self.port))
                await self._pass(data, target, "back" if spoken else "there")

    async def _pass(self, data: bytes, target: asyncio.StreamWriter, direction: str) -> None:
        while self.condition.hole in (direction, "both"):
            self.held += len(data)
            await self.changed.wait()
        condition = self.condition
        if condition != HEALTHY:
            self.hampered += len(data)
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
    def _without_lost(data: bytes, loss: Loss, sent: bytes) -> tuple[bytes, bytes, bool]:
        """Return the complete messages without lost ones, the rest, and whether the connection ends."""
        is_reply = loss.replies_to is None or loss.replies_to(sent)
        kept = bytearray()
        while size := loss.size(data):
            message, data = data[:size], data[size:]
            if loss.left and is_reply and loss.chosen(message):
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

    @property
    def hampered(self) -> int:
        """Bytes that passed while a condition was set."""
        return self._link.hampered

    @contextmanager
    def condition(self, condition: Condition) -> Iterator[None]:
        """A condition of the link while the block is open."""
        self._run(self._change(condition))
        try:
            yield
        finally:
            self._run(self._change(HEALTHY))

    @property
    def accepted(self) -> int:
        """How many connections were made in all."""
        return self._link.accepted

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

    def forward_to(self, port: int, *, host: str = "127.0.0.1") -> None:
        """Lead new connections to another server; those that are open stay where they are."""
        self._link.forward_to(port, host=host)

    def lead_to(self, port: int, *, host: str = "127.0.0.1") -> None:
        """Break every connection; new ones reach another server."""
        self.forward_to(port, host=host)
        self.reset()

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
