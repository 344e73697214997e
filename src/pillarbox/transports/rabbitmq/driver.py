"""pika's connections and channels, with what pika does not offer.

`Wire` writes encoded frames, reads confirms from the bytes, cuts a connection at once, and receives a message whatever
its properties are. `Channel` has one thing to wait for at a time.

The only module that touches pika's internals. If a release of pika renames something in `_INTERNALS`, a connection
publishes through pika's own methods and logs it once; the tests of lost connections and of strange messages fail.
"""

from __future__ import annotations

import asyncio
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

from pillarbox.core.errors import UnavailableError
from pillarbox.transports.rabbitmq.confirms import ChannelRefused, leading_confirms
from pillarbox.transports.rabbitmq.properties import ReceivedProperties

__all__ = [
    "AMQPError",
    "Basic",
    "BasicProperties",
    "Channel",
    "ChannelWrongStateError",
    "ConnectionMethods",
    "ConnectionParameters",
    "ConnectionWrongStateError",
    "Method",
    "PlainCredentials",
    "RawChannel",
    "SSLOptions",
    "Wire",
    "reason_of",
]

OnConfirm = Callable[[int, bool, bool], None]
"""Called with the delivery tag of a confirm, whether it is multiple, and whether the broker accepted."""

_log = logging.getLogger("pillarbox.rabbitmq")

_INTERNALS = ("_adapter_emit_data", "_read_frame", "_frame_buffer", "bytes_received", "frames_received", "bytes_sent")
"""What pika must have for frames to be written and confirms to be read without it."""
_FRAME_START = 7
_HEADER = struct.Struct(">BHLHHQ")
"""Kind of frame, channel, size; class, weight, size of the body. The properties follow, then the byte that ends it."""
_HEADER_FRAME = 2
_HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"
"""The frame of a heartbeat."""
_CHUNK = 1 << 16
"""Bytes per write: the kernel would cut a longer one, and pika copy the rest for each piece."""


class Wire(AsyncioConnection):
    """One connection. pika writes three frames per message separately and makes three objects of each confirm; encoded
    frames and confirms go past it."""

    # pika's, and not in the stubs.
    bytes_sent: int
    bytes_received: int
    frames_received: int
    _frame_buffer: bytes

    _parts: list[bytes] | None = None
    _size = 0
    written = 0
    """Bytes handed to pika or to the kernel."""
    _last_frame = 0
    """How many they were after the last frame that was not a heartbeat."""
    received = 0
    """How many of them the broker has received: it confirmed the message that ended there."""
    confirmed = 0
    """Confirms received by publishers."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._on_confirm: dict[int, OnConfirm] = {}
        super().__init__(*arguments, **named)
        missing = [name for name in _INTERNALS if not (name in vars(self) or hasattr(AsyncioConnection, name))]
        self.direct = not missing
        """Whether this release of pika lets frames and confirms go past it."""
        if missing:
            _warn_of_missing(", ".join(missing))

    @property
    def endpoint(self) -> str:
        """Host, port and virtual host, for errors."""
        return f"{self.params.host}:{self.params.port}, virtual host {self.params.virtual_host!r}"

    def write(self, pieces: Sequence[bytes]) -> None:
        """Write encoded frames; only if the connection is `direct`."""
        if not pieces:
            return
        data = b"".join(pieces)
        self.bytes_sent += len(data)
        for start in range(0, len(data), _CHUNK):
            self._adapter_emit_data(data[start : start + _CHUNK])

    def take_confirms(self, channel: RawChannel, on_confirm: OnConfirm) -> None:
        """Read the confirms of a channel from the bytes until it is closed, in their order among all other frames.
        pika does not see them; only if the connection is `direct`."""
        number = channel.channel_number
        self._on_confirm[number] = on_confirm

        def forget(*_: object) -> None:
            self._on_confirm.pop(number, None)

        # pika reuses the number of a channel only after this callback.
        channel.add_on_close_callback(forget)
        # pika reads until the socket is empty. Confirms are short: a second read would find nothing.
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
        """Bytes that have left this machine: those written, without what pika and the kernel still hold, and without
        the heartbeats after the last other frame, which a broker that confirms nothing receives, too."""
        stream: Any = getattr(self, "_transport", None)
        if stream is None or 0 < self.received == self._last_frame:
            return self._last_frame
        left = self.written - int(stream.get_write_buffer_size()) - _unsent(getattr(stream, "_sock", None))
        return min(left, self._last_frame)

    def abort(self) -> None:
        """Cut the connection without waiting for the broker; the callbacks are called soon after."""
        if self.is_closed:
            return
        if self.is_open or self.is_closing:
            self._terminate_stream(ConnectionOpenAborted("aborted"))  # type: ignore[attr-defined] # not in the stubs
        else:
            self.close()

    def _on_connection_workflow_done(self, result: object) -> None:
        # If the connection is aborted before it is open, pika 1.4 passes the class of the error and then fails on it.
        result = result() if isinstance(result, type) else result
        super()._on_connection_workflow_done(result)  # type: ignore[misc] # not in the stubs

    def _read_frame(self) -> tuple[int, object]:
        if not self.direct:
            return super()._read_frame()  # type: ignore[misc,no-any-return] # not in the stubs
        if self._on_confirm:
            self._read_confirms()
            if not self._frame_buffer:
                return 0, None
        # pika decodes the properties of a message here, and drops the connection if it cannot decode them.
        frame = self._frame_buffer
        if len(frame) < _HEADER.size or frame[0] != _HEADER_FRAME:
            return super()._read_frame()  # type: ignore[misc,no-any-return] # not in the stubs
        _, channel, size, _, _, body_size = _HEADER.unpack_from(frame)
        end = _FRAME_START + size
        if end + 1 > len(frame):
            return 0, None
        return end + 1, Header(channel, body_size, ReceivedProperties(frame[_HEADER.size : end]))  # type: ignore[arg-type]

    def _read_confirms(self) -> None:
        confirms, size = leading_confirms(self._frame_buffer, self._on_confirm)
        if confirms:
            self._frame_buffer = self._frame_buffer[size:]
            # pika's heartbeat checker drops a connection whose byte count does not grow.
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
        if data != _HEARTBEAT:
            self._last_frame = self.written
        if rest := data[self._send_now(data) :]:
            super()._adapter_emit_data(rest)  # type: ignore[misc] # not in the stubs

    def _send_now(self, data: bytes) -> int:
        """Write to the socket at once, without waiting for the event loop; returns how many bytes the kernel took.

        0 while pika still holds earlier bytes, on an encrypted stream, and on any error, which pika then finds itself.
        """
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


def _unsent(stream: socket.socket | None) -> int:
    """Bytes that the kernel has taken and the broker has not acknowledged; 0 if the kernel does not report it."""
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


class Channel:
    """A channel with one thing to wait for at a time: a reply of the broker, or its own end.

    Every wait ends: with the reply, with ChannelRefused if the broker closed the channel, or with UnavailableError if
    the connection was lost or blocked.
    """

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._awaited: asyncio.Future[Any] | None = None
        self._raw: RawChannel | None = None
        self.failure: ChannelRefused | UnavailableError | None = None
        """Why the channel has ended; None while it is usable."""

    async def open(self) -> None:
        """Once, before everything else. Raises ChannelRefused, UnavailableError."""
        try:
            self._raw = self.wire.channel(on_open_callback=self.replied)
        except ConnectionWrongStateError as error:
            raise self._lost(error) from error
        self._raw.add_on_close_callback(self._closed)
        await self.reply()

    @property
    def raw(self) -> RawChannel:
        """pika's channel. Raises what ended this one."""
        if self.failure is not None:
            raise self.failure
        if self._raw is None:
            raise UnavailableError(f"a channel to {self.wire.endpoint} was used before it was open")
        return self._raw

    async def call(self, method: Callable[..., object], **arguments: Any) -> Any:
        """Call a method of pika's channel and return the broker's reply. Raises ChannelRefused, UnavailableError."""
        method(**arguments, callback=self.replied)
        return await self.reply()

    def reply(self) -> asyncio.Future[Any]:
        """What `replied` is called with, to be awaited. Raises what ended the channel, before or meanwhile."""
        if self.failure is not None:
            raise self.failure
        self._awaited = asyncio.get_running_loop().create_future()
        return self._awaited

    def replied(self, reply: object = None) -> None:
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(reply)

    def fail(self, error: ChannelRefused | UnavailableError) -> None:
        """End the channel for this reason, unless it has ended already; a pending wait raises it."""
        if self.failure is None:
            self.failure = error
            if self._awaited is not None and not self._awaited.done():
                self._awaited.set_exception(error)

    def close(self) -> None:
        """Close the channel without waiting for the broker's reply."""
        self.fail(UnavailableError(f"a channel to {self.wire.endpoint} was closed"))
        if self._raw is not None and (self._raw.is_open or self._raw.is_opening):
            self._raw.close()

    def _closed(self, _: RawChannel, reason: Exception) -> None:
        if isinstance(reason, ChannelClosedByBroker):
            self.fail(ChannelRefused(reason.reply_code, reason.reply_text))
        else:
            self.fail(self._lost(reason))

    def _lost(self, reason: Exception) -> UnavailableError:
        return UnavailableError(f"lost the connection to RabbitMQ at {self.wire.endpoint}: {reason_of(reason)}")


def reason_of(error: BaseException | None) -> str:
    """The innermost reason in one line; pika wraps a refused connection five times."""
    while error is not None:
        wrapped = (getattr(error, "exception", None), *getattr(error, "exceptions", ())[-1:], *error.args[:1])
        inner = next((found for found in wrapped if isinstance(found, BaseException)), None)
        if inner is None:
            break
        error = inner
    if isinstance(error, ConnectionClosed):
        return f"{error.reply_text} ({error.reply_code})"
    return f"{type(error).__name__}: {error}".removesuffix(": ") if error is not None else "no reason given"
