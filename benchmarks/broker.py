"""The raw limit of the broker, its queues, and the messages in them.

The raw limit is what a queue accepts from the least that publishes with confirms: a socket with frames that were
encoded beforehand, one write per window, persistent, mandatory, of the same size as a relay's messages.
"""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pika
from pika import frame, spec
from pika.amqp_object import Method

from benchmarks.events import MARKER, payload

FRAME_MAX = 131_072
WINDOW = 1000
"""Messages of one write, all confirmed before the next."""
ACK = struct.Struct(">7xIQBx")
_MARKER = re.compile(MARKER)
_LONGEST_MARKER = 16


class RawPublisher:
    """A blocking socket that sends windows of prepared bytes."""

    def __init__(self, port: int, queue: str, *, window: int = WINDOW) -> None:
        self._connection = _Connection(port)
        self._connection.call(spec.Confirm.Select(), spec.Confirm.SelectOk)
        self._size = window
        self._window = b"".join(_message(number, queue) for number in range(1, window + 1))
        self._sent = 0

    def publish(self) -> None:
        """Send one window and wait until all of it is confirmed."""
        self._connection.socket.sendall(self._window)
        self._sent += self._size
        self._wait_confirmed(self._sent)

    def close(self) -> None:
        self._connection.close()

    def _wait_confirmed(self, last: int) -> None:
        """Read acks, of 21 bytes each; any other frame fails the measurement."""
        read = self._connection.read
        low, single = last - self._size, set[int]()
        while low < last:
            read += self._connection.socket.recv(1 << 16)
            whole = len(read) // ACK.size * ACK.size
            for code, tag, multiple in ACK.iter_unpack(bytes(read[:whole])):
                assert code == spec.Basic.Ack.INDEX
                if multiple:
                    low = max(low, tag)
                else:
                    single.add(tag)
            del read[:whole]
            while low + 1 in single:
                low += 1


@contextmanager
def raw_publisher(port: int, queue: str, *, window: int = WINDOW) -> Iterator[RawPublisher]:
    publisher = RawPublisher(port, queue, window=window)
    try:
        yield publisher
    finally:
        publisher.close()


def raw_rate(port: int, queue: str, messages: int, *, window: int = WINDOW) -> float:
    """Messages per second that the queue confirms with one window in flight."""
    with raw_publisher(port, queue, window=window) as publisher:
        windows = max(1, messages // window)
        began = time.perf_counter()
        for _ in range(windows):
            publisher.publish()
        return windows * window / (time.perf_counter() - began)


class Arrived(NamedTuple):
    """The messages of a queue."""

    numbers: set[int]
    """The events, by their numbers."""
    repeats: int


class Queues:
    """Creates a new queue for each sample."""

    def __init__(self, url: str, port: int) -> None:
        self._port = port
        self._pika = pika.BlockingConnection(pika.URLParameters(f"{url}?heartbeat=0"))
        self._channel = self._pika.channel()

    def make(self, name: str, kind: str) -> None:
        self._channel.queue_delete(name)
        self._channel.queue_declare(name, durable=True, arguments={"x-queue-type": kind})

    def depth(self, name: str) -> int:
        return int(self._channel.queue_declare(name, passive=True).method.message_count)

    def take_all(self, name: str) -> Arrived:
        """Take every message out of a queue and read the number of its event from its body."""
        expected = self.depth(name)
        numbers, found = set[int](), 0
        connection = _Connection(self._port)
        try:
            connection.call(spec.Basic.Consume(queue=name, no_ack=True), spec.Basic.ConsumeOk)
            rest = bytes(connection.read)
            while True:
                marks = [int(mark) for mark in _MARKER.findall(rest)]
                numbers.update(marks)
                found += len(marks)
                if found >= expected:
                    return Arrived(numbers, found - len(numbers))
                # A marker may be cut in two. None is counted twice: what is kept is shorter than a whole one.
                last = list(_MARKER.finditer(rest))[-1:]
                kept = max(len(rest) - _LONGEST_MARKER, last[0].end() if last else 0)
                rest = rest[kept:] + connection.socket.recv(1 << 20)
        finally:
            connection.close()

    def remove(self, name: str) -> None:
        self._channel.queue_delete(name)

    def close(self) -> None:
        self._pika.close()


class _Connection:
    """A minimal AMQP connection: a socket with one open channel."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.read = bytearray()
        self.socket.sendall(b"AMQP\x00\x00\x09\x01")
        self._expect(spec.Connection.Start)
        self._say(0, spec.Connection.StartOk({}, "PLAIN", "\x00guest\x00guest", "en_US"))
        self._expect(spec.Connection.Tune)
        self._say(0, spec.Connection.TuneOk(2047, FRAME_MAX, 0))
        self._say(0, spec.Connection.Open("/", insist=True))
        self._expect(spec.Connection.OpenOk)
        self.call(spec.Channel.Open(), spec.Channel.OpenOk)

    def call(self, method: Method, answer: type[Method]) -> None:
        self._say(1, method)
        self._expect(answer)

    def close(self) -> None:
        self.socket.close()

    def _say(self, channel: int, method: Method) -> None:
        self.socket.sendall(frame.Method(channel, method).marshal())

    def _expect(self, method: type[Method]) -> None:
        while True:
            used, found = frame.decode_frame(bytes(self.read))
            if found is None:
                self.read += self.socket.recv(1 << 16)
                continue
            del self.read[:used]
            assert isinstance(found, frame.Method)
            assert isinstance(found.method, method), found
            return


def _message(number: int, queue: str) -> bytes:
    body = payload(number)
    properties = spec.BasicProperties(
        message_id=f"0193f1a2-7c4e-7aaa-8000-{number:012d}",
        content_type="application/json",
        type="order.placed",
        timestamp=int(time.time()),
        delivery_mode=2,
        headers={"eventType": "order.placed", "occurredAt": "2026-11-30T12:00:00.000000Z", "schemaVersion": 1},
    )
    publish = spec.Basic.Publish(exchange="", routing_key=queue, mandatory=True)
    frames = (frame.Method(1, publish), frame.Header(1, len(body), properties), frame.Body(1, body))
    return b"".join(each.marshal() for each in frames)
