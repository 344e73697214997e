"""pika, and what it does not offer: writing encoded frames, reading confirms from the bytes, cutting a connection at
once, and receiving a message whatever its properties are.

The only file that touches what pika keeps to itself. If a release of pika renames something in `_INTERNALS`, a
connection publishes through pika's own methods and the log says so once; the tests of lost connections and of strange
messages fail.
"""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

try:
    from pika import BasicProperties, ConnectionParameters, PlainCredentials, SSLOptions
    from pika import __version__ as _pika_version
    from pika.adapters.asyncio_connection import AsyncioConnection
    from pika.channel import Channel as RawChannel
    from pika.exceptions import (
        AMQPError,
        ChannelClosedByBroker,
        ChannelWrongStateError,
        ConnectionClosed,
        ConnectionOpenAborted,
        ConnectionWrongStateError,
    )
    from pika.frame import Header, Method
    from pika.spec import Basic
    from pika.spec import Connection as ConnectionMethods
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('RabbitMQ needs pika: pip install "pillarbox[rabbitmq]"') from missing

from pillarbox.transports.rabbitmq.confirms import leading_confirms
from pillarbox.transports.rabbitmq.endpoint import Endpoint
from pillarbox.transports.rabbitmq.received import Received

__all__ = [
    "AMQPError",
    "Basic",
    "BasicProperties",
    "ChannelClosedByBroker",
    "ChannelWrongStateError",
    "ConnectionMethods",
    "ConnectionWrongStateError",
    "Method",
    "RawChannel",
    "Wire",
    "parameters_of",
    "reason_of",
]

OnConfirm = Callable[[int, bool, bool], None]
"""Called with the tag of a confirm, whether it is multiple, and whether the broker accepted."""

_log = logging.getLogger("pillarbox.rabbitmq")

_INTERNALS = ("_adapter_emit_data", "_read_frame", "_frame_buffer", "bytes_received", "frames_received", "bytes_sent")
"""What has to exist in pika for frames to be written and confirms to be read without it."""
_FRAME_START = 7
_HEADER = struct.Struct(">BHLHHQ")
"""Kind of frame, channel, size; class, weight, size of the body. The properties follow, and a byte that ends it."""
_HEADER_FRAME = 2
_CHUNK = 1 << 16
"""Bytes per write: a longer one would be cut by the kernel and copied again for each piece."""


class Wire(AsyncioConnection):
    """One connection. pika builds and writes each frame by itself, three a message, and makes three objects of each
    confirm; frames that were encoded already and confirms go past it."""

    # pika's, and not in the stubs.
    bytes_sent: int
    bytes_received: int
    frames_received: int
    _frame_buffer: bytes

    _parts: list[bytes] | None = None
    _size = 0
    written = 0
    """Bytes that were written, whoever holds them now."""
    received = 0
    """How many of them the broker is known to have, because it confirmed what ended there."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._on_confirm: dict[int, OnConfirm] = {}
        super().__init__(*arguments, **named)
        missing = [name for name in _INTERNALS if not (name in vars(self) or hasattr(AsyncioConnection, name))]
        self.direct = not missing
        """Whether this release of pika lets frames and confirms go past it."""
        if missing:
            _warn_of_missing(", ".join(missing))

    def write(self, pieces: Sequence[bytes]) -> None:
        """Write encoded frames; only where the connection is `direct`."""
        if not pieces:
            return
        data = b"".join(pieces)
        self.bytes_sent += len(data)
        for start in range(0, len(data), _CHUNK):
            self._adapter_emit_data(data[start : start + _CHUNK])

    def take_confirms(self, channel: RawChannel, on_confirm: OnConfirm) -> None:
        """Read the confirms of a channel from the bytes until it is closed, in their order among all other frames.
        pika is not told of them; only where the connection is `direct`."""
        number = channel.channel_number
        self._on_confirm[number] = on_confirm

        def forget(*_: object) -> None:
            self._on_confirm.pop(number, None)

        # pika gives the number to another channel only after this.
        channel.add_on_close_callback(forget)
        # pika reads until there is no more. Confirms are short: the second read would only find that out.
        stream: Any = getattr(self, "_transport", None)
        if type(getattr(stream, "_sock", None)) is socket.socket:
            stream._MAX_CONSUME_BYTES = 1

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Write what is sent inside in large pieces. Nothing inside may await."""
        self._parts = []
        try:
            yield
        finally:
            self._flush()
            self._parts = None

    @property
    def transmitted(self) -> int:
        """Bytes that have left: those that were written, without what pika and the kernel still hold."""
        stream: Any = getattr(self, "_transport", None)
        if stream is None or 0 < self.received == self.written:
            return self.written
        return self.written - int(stream.get_write_buffer_size()) - _unsent(getattr(stream, "_sock", None))

    def let_go(self) -> None:
        """Cut it, whatever the other side does or does not answer; the callbacks hear of it soon."""
        if self.is_closed:
            return
        if self.is_open or self.is_closing:
            self._terminate_stream(ConnectionOpenAborted("let go"))  # type: ignore[attr-defined] # not in the stubs
        else:
            self.close()

    def _on_connection_workflow_done(self, result: object) -> None:
        # Let go of before it was open: pika 1.4 hands over the class of that error, and stumbles over it.
        result = result() if isinstance(result, type) else result
        super()._on_connection_workflow_done(result)  # type: ignore[misc] # not in the stubs

    def _read_frame(self) -> tuple[int, object]:
        if not self.direct:
            return super()._read_frame()  # type: ignore[misc,no-any-return] # not in the stubs
        if self._on_confirm:
            self._read_confirms()
            if not self._frame_buffer:
                return 0, None
        # pika decodes the properties of a message here, and drops the connection over what it cannot decode.
        frame = self._frame_buffer
        if len(frame) < _HEADER.size or frame[0] != _HEADER_FRAME:
            return super()._read_frame()  # type: ignore[misc,no-any-return] # not in the stubs
        _, channel, size, _, _, body_size = _HEADER.unpack_from(frame)
        end = _FRAME_START + size
        if end + 1 > len(frame):
            return 0, None
        return end + 1, Header(channel, body_size, Received(frame[_HEADER.size : end]))  # type: ignore[arg-type]

    def _read_confirms(self) -> None:
        confirms, size = leading_confirms(self._frame_buffer, self._on_confirm)
        if confirms:
            self._frame_buffer = self._frame_buffer[size:]
            # pika takes a peer of which it counts no more bytes for dead.
            self.bytes_received += size
            self.frames_received += len(confirms)
            for channel, tag, multiple, accepted in confirms:
                self._on_confirm[channel](tag, multiple, accepted)

    def _adapter_emit_data(self, data: bytes) -> None:
        if self._parts is None:
            self._emit(data)
            return
        self._parts.append(data)
        self._size += len(data)
        if self._size >= _CHUNK:
            self._flush()

    def _flush(self) -> None:
        if self._parts:
            self._emit(b"".join(self._parts))
            self._parts.clear()
            self._size = 0

    def _emit(self, data: bytes) -> None:
        self.written += len(data)
        if rest := data[self._send_now(data) :]:
            super()._adapter_emit_data(rest)  # type: ignore[misc] # not in the stubs

    def _send_now(self, data: bytes) -> int:
        """Give the kernel what it takes, instead of waiting until it says that it takes something; returns how many
        bytes that were. None while pika still has some, of an encrypted stream, and where anything is wrong: pika finds
        that out."""
        stream: Any = getattr(self, "_transport", None)
        plain = getattr(stream, "_sock", None)
        if not self.direct or type(plain) is not socket.socket or stream.get_write_buffer_size():
            return 0
        try:
            return plain.send(data)
        except OSError:
            return 0


@cache
def _warn_of_missing(names: str) -> None:
    _log.warning(
        "pika %s has no %s: messages are published through pika's own methods, which takes more CPU time; "
        "install a release of pika that this version was tested with",
        _pika_version,
        names,
    )


def parameters_of(endpoint: Endpoint, *, heartbeat: float) -> ConnectionParameters:
    """pika's parameters: one attempt and no clock; trying again is the relay's business, the bound is the caller's."""
    return ConnectionParameters(
        host=endpoint.host,
        port=endpoint.port,
        virtual_host=endpoint.vhost,
        credentials=PlainCredentials(endpoint.user, endpoint.password),
        ssl_options=None if endpoint.tls is None else SSLOptions(endpoint.tls, endpoint.host),
        heartbeat=round(heartbeat),
        connection_attempts=1,
        retry_delay=0,
        socket_timeout=None,
        stack_timeout=None,
        client_properties={"connection_name": "pillarbox"},
    )


def _unsent(stream: socket.socket | None) -> int:
    """Bytes that the kernel has taken and the other side has not; 0 where it does not tell."""
    try:
        from fcntl import ioctl
        from termios import TIOCOUTQ
    except ImportError:  # pragma: no cover - on Windows
        return 0
    if stream is None:
        return 0
    try:
        [count] = struct.unpack("i", ioctl(stream.fileno(), TIOCOUTQ, b"\0" * 4))
    except (OSError, ValueError):  # closed meanwhile
        return 0
    return int(count)


def reason_of(error: BaseException | None) -> str:
    """The innermost reason in one line; pika wraps a refused connection five times."""
    while error is not None and (inner := _inner(error)) is not None:
        error = inner
    if isinstance(error, ConnectionClosed):
        return f"{error.reply_text} ({error.reply_code})"
    return f"{type(error).__name__}: {error}".removesuffix(": ") if error is not None else "no reason given"


def _inner(error: BaseException) -> BaseException | None:
    for found in (getattr(error, "exception", None), *getattr(error, "exceptions", ())[-1:], *error.args[:1]):
        if isinstance(found, BaseException):
            return found
    return None
