"""pika, and the two things it does not offer: writing many frames at once, and letting go of a connection at once.

The only file that touches what pika keeps to itself. Should a method be renamed, frames are written one by one again,
and the tests of lost connections fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

try:
    from pika import BasicProperties, ConnectionParameters, PlainCredentials, SSLOptions
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
    from pika.frame import Method
    from pika.spec import Basic
    from pika.spec import Connection as ConnectionMethods
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('RabbitMQ needs pika: pip install "pillarbox[rabbitmq]"') from missing

from pillarbox.transports.rabbitmq.place import Place

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

_CHUNK = 1 << 16
"""Bytes per write: a longer one would be cut by the kernel and copied again for each piece."""


class Wire(AsyncioConnection):
    """One connection. pika writes each frame by itself, three a message; joined they cost half the processor time."""

    _parts: list[bytes] | None = None
    _size = 0

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Write what is sent inside in large pieces. Nothing inside may await."""
        self._parts = []
        try:
            yield
        finally:
            self._flush()
            self._parts = None

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

    def _adapter_emit_data(self, data: bytes) -> None:
        if self._parts is None:
            super()._adapter_emit_data(data)  # type: ignore[misc] # not in the stubs
            return
        self._parts.append(data)
        self._size += len(data)
        if self._size >= _CHUNK:
            self._flush()

    def _flush(self) -> None:
        if self._parts:
            super()._adapter_emit_data(b"".join(self._parts))  # type: ignore[misc] # not in the stubs
            self._parts.clear()
            self._size = 0


def parameters_of(place: Place, *, heartbeat: float) -> ConnectionParameters:
    """pika's parameters: one attempt and no clock; trying again is the relay's business, the bound is the caller's."""
    return ConnectionParameters(
        host=place.host,
        port=place.port,
        virtual_host=place.vhost,
        credentials=PlainCredentials(place.user, place.password),
        ssl_options=None if place.tls is None else SSLOptions(place.tls, place.host),
        heartbeat=round(heartbeat),
        connection_attempts=1,
        retry_delay=0,
        socket_timeout=None,
        stack_timeout=None,
        client_properties={"connection_name": "pillarbox"},
    )


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
