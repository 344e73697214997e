"""A scripted broker: pika's connection classes over an in-memory stream instead of a socket.

The transport reads and writes some frames itself, next to pika. A test sends exact bytes, cut anywhere, and compares
the state and the written bytes with those of an unmodified pika connection. A real broker does not produce such cuts
or faults on request; `tests/integration/rabbitmq` tests the same code with a real broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pika import ConnectionParameters, frame, spec
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.amqp_object import Method
from pika.channel import Channel

FRAME_MAX = 131_072
HEARTBEAT = 10
_CAPABILITIES = {"capabilities": {"basic.nack": True, "publisher_confirms": True}}

C = TypeVar("C", bound=AsyncioConnection)


class Stream:
    """What pika takes for a socket."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.held_back = 0
        """Bytes that count as not sent yet."""
        self.aborted = False

    def write(self, data: bytes) -> None:
        assert data
        self.written += data

    def get_write_buffer_size(self) -> int:
        return self.held_back

    def abort(self) -> None:
        self.aborted = True


class Broker:
    """The other side of one connection."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.stream = Stream()

    def open(self, frame_max: int) -> None:
        self.connection._proto_connection_made(self.stream)
        self.say(0, spec.Connection.Start(0, 9, _CAPABILITIES, "PLAIN", "en_US"))
        self.say(0, spec.Connection.Tune(2047, frame_max, HEARTBEAT))
        self.say(0, spec.Connection.OpenOk())
        assert self.connection.is_open

    def channel(self, number: int) -> Channel:
        opened: Channel = self.connection.channel(number)
        self.say(number, spec.Channel.OpenOk())
        assert opened.is_open
        return opened

    def say(self, channel: int, method: Method) -> None:
        self.send(method_frame(channel, method))

    def send(self, data: bytes) -> None:
        self.connection._proto_data_received(data)

    def heard(self) -> list[Any]:
        """The frames written since the last time."""
        found = frames_in(bytes(self.stream.written))
        self.stream.written.clear()
        return found


@contextmanager
def scripted(kind: type[C], frame_max: int = FRAME_MAX) -> Iterator[tuple[C, Broker]]:
    """An open connection of this class, and its broker."""
    try:
        loop, own = asyncio.get_running_loop(), False
    except RuntimeError:
        loop, own = asyncio.new_event_loop(), True
    parameters = ConnectionParameters(heartbeat=HEARTBEAT, frame_max=FRAME_MAX)
    connection = kind(parameters, custom_ioloop=loop, internal_connection_workflow=False)
    broker = Broker(connection)
    broker.open(frame_max)
    broker.stream.written.clear()
    yield connection, broker
    # pika would go on sending heartbeats.
    broker.connection._remove_heartbeat()
    if own:
        loop.close()


def method_frame(channel: int, method: Method) -> bytes:
    marshalled: bytes = frame.Method(channel, method).marshal()
    return marshalled


def content_frames(channel: int, properties: Any, *bodies: bytes) -> list[bytes]:
    header = frame.Header(channel, sum(map(len, bodies)), properties)
    return [header.marshal(), *(frame.Body(channel, body).marshal() for body in bodies)]


def frames_in(data: bytes) -> list[Any]:
    """As pika decodes them; there is nothing left over."""
    found: list[Any] = []
    while data:
        size, value = frame.decode_frame(data)
        assert value is not None, data
        found.append(value)
        data = data[size:]
    return found
