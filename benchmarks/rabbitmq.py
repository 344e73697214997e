"""How fast a broker takes messages from our transport, beside the fastest that any client could be.

    python -m benchmarks.rabbitmq [messages] [repeats]

Starts a private RabbitMQ. The limit is a socket with frames encoded beforehand, one write per 1,000 messages and 1,000
unconfirmed at once; ours is `send` of lots of 500, two at once, encoded while it sends. The ways take turns within each
repeat; the table shows medians, and the share of the limit within the same run. 320-byte bodies, persistent, mandatory,
confirmed; two cores are shared with the broker.
"""

from __future__ import annotations

import asyncio
import socket
import statistics
import struct
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import pika
from pika import frame, spec
from pika.amqp_object import Method

from pillarbox.core.transport import Outgoing
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.rabbitmq import Queue, RabbitMQ
from pillarbox.transports.rabbitmq.confirms import Confirms
from pillarbox.transports.rabbitmq.properties import properties_of
from pillarbox.transports.rabbitmq.topology import QueueType
from tests.servers.rabbitmq import RabbitMQServer

BODY = b"x" * 320
WINDOW = 1000
FRAME_MAX = 131_072
ACK = struct.Struct(">7xIQBx")
QUEUES: tuple[QueueType, ...] = ("classic", "quorum")


class Measured(NamedTuple):
    """Messages per second, and microseconds of the client's processor per message."""

    rate: float
    cpu: float


def measured(work: Callable[[], None], messages: int) -> Measured:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Measured(messages / (time.perf_counter() - wall), (time.process_time() - cpu) / messages * 1e6)


def lot_of(number: int, queue: str) -> list[Outgoing]:
    address = RabbitMQ.to(routing_key=queue)
    return [outgoing(f"0193f1a2-7c4e-7aaa-8000-{n:012d}", address, body=BODY) for n in range(number)]


def ours(url: str, kind: QueueType, messages: int) -> Measured:
    queue, loop = f"bench.{kind}", asyncio.new_event_loop()
    transport = RabbitMQ(url, queues=[Queue(name=queue, type=kind)])
    pace = transport.pace
    lot = lot_of(pace.lot, queue)
    lots = messages // pace.lot

    async def one_after_another(number: int) -> None:
        for _ in range(number):
            assert not any(await transport.send(lot))

    async def carry() -> None:
        await asyncio.gather(*(one_after_another(lots // pace.lots) for _ in range(pace.lots)))

    loop.run_until_complete(transport.ping())
    figures = measured(lambda: loop.run_until_complete(carry()), lots // pace.lots * pace.lots * pace.lot)
    loop.run_until_complete(transport.aclose())
    loop.close()
    return figures


class RawPublisher:
    """The least that publishes with confirms: a blocking socket and bytes that were ready before."""

    def __init__(self, port: int, queue: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read = bytearray()
        self._socket.sendall(b"AMQP\x00\x00\x09\x01")
        self._expect(spec.Connection.Start)
        self._say(0, spec.Connection.StartOk({}, "PLAIN", "\x00guest\x00guest", "en_US"))
        self._expect(spec.Connection.Tune)
        self._say(0, spec.Connection.TuneOk(2047, FRAME_MAX, 0))
        self._say(0, spec.Connection.Open("/", insist=True))
        self._expect(spec.Connection.OpenOk)
        self._say(1, spec.Channel.Open())
        self._expect(spec.Channel.OpenOk)
        self._say(1, spec.Confirm.Select())
        self._expect(spec.Confirm.SelectOk)
        self._window = b"".join(self._encoded(one, queue) for one in lot_of(WINDOW, queue))

    def publish(self, windows: int) -> None:
        for number in range(windows):
            self._socket.sendall(self._window)
            self._confirmed(number * WINDOW + 1)

    def close(self) -> None:
        self._socket.close()

    def _encoded(self, one: Outgoing, queue: str) -> bytes:
        properties = properties_of(one, int(time.time()), FRAME_MAX)
        publish = spec.Basic.Publish(exchange="", routing_key=queue, mandatory=True)
        frames = (frame.Method(1, publish), frame.Header(1, len(one.body), properties), frame.Body(1, one.body))
        return b"".join(each.marshal() for each in frames)

    def _say(self, channel: int, method: Method) -> None:
        self._socket.sendall(frame.Method(channel, method).marshal())

    def _expect(self, method: type[Method]) -> None:
        while True:
            used, found = frame.decode_frame(bytes(self._read))
            if found is None:
                self._read += self._socket.recv(1 << 16)
                continue
            del self._read[:used]
            assert isinstance(found, frame.Method)
            assert isinstance(found.method, method), found
            return

    def _confirmed(self, first: int) -> None:
        """Read acks, of 21 bytes each, until all are in; any other frame fails the measurement."""
        confirms = Confirms(first, WINDOW)
        while confirms.open:
            self._read += self._socket.recv(1 << 16)
            whole = len(self._read) // ACK.size * ACK.size
            for code, tag, multiple in ACK.iter_unpack(self._read[:whole]):
                assert code == spec.Basic.Ack.INDEX
                confirms.resolve(tag, multiple=bool(multiple), accepted=True)
            del self._read[:whole]


def limit(server: RabbitMQServer, kind: QueueType, messages: int) -> Measured:
    publisher = RawPublisher(server.port, f"bench.{kind}")
    windows = messages // WINDOW
    figures = measured(lambda: publisher.publish(windows), windows * WINDOW)
    publisher.close()
    return figures


def empty(url: str, kind: QueueType) -> None:
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.queue_delete(f"bench.{kind}")
        channel.queue_declare(f"bench.{kind}", durable=True, arguments={"x-queue-type": kind})


def main() -> None:
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 40_000
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    found: dict[tuple[str, str], list[Measured]] = {}
    with RabbitMQServer() as server:
        for _ in range(repeats):
            for kind in QUEUES:
                empty(server.url(), kind)
                found.setdefault((kind, "limit"), []).append(limit(server, kind, messages))
                empty(server.url(), kind)
                found.setdefault((kind, "send"), []).append(ours(server.url(), kind, messages))
    print("| queue | way | messages/s | of the limit | client CPU µs/message |")
    print("|---|---|---|---|---|")
    for (queue, way), figures in found.items():
        rate = statistics.median(figure.rate for figure in figures)
        cpu = statistics.median(figure.cpu for figure in figures)
        share = rate / statistics.median(figure.rate for figure in found[queue, "limit"])
        print(f"| {queue} | {way} | {rate:,.0f} | {share:.2f} | {cpu:.1f} |")


if __name__ == "__main__":
    main()
