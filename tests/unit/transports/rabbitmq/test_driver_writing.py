"""Frames go to the kernel at once as far as it takes them; pika keeps the rest, and nothing overtakes it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from pillarbox.transports.rabbitmq.driver import Wire
from tests.unit.transports.rabbitmq.scripted import Stream, scripted


class SocketStream(Stream):
    """What pika has of a socket: the socket, and what it keeps until that is writable."""

    def __init__(self, ours: socket.socket) -> None:
        super().__init__()
        self._sock = ours

    def get_write_buffer_size(self) -> int:
        return len(self.written)


@contextmanager
def connected() -> Iterator[tuple[Wire, SocketStream, socket.socket]]:
    """A connection on one end of a pair of sockets, and the other end."""
    ours, theirs = socket.socketpair()
    with ours, theirs, scripted(Wire) as (wire, broker):
        ours.setblocking(False)
        theirs.setblocking(False)
        broker.connection._transport = stream = SocketStream(ours)
        yield wire, stream, theirs


def drain(end: socket.socket) -> bytes:
    found = bytearray()
    try:
        while data := end.recv(1 << 20):
            found += data
    except BlockingIOError:
        pass
    return bytes(found)


def test_bytes_that_the_kernel_accepts_do_not_wait() -> None:
    with connected() as (wire, stream, theirs):
        wire.write([b"first ", b"second"])
        assert drain(theirs) == b"first second"
        assert stream.written == b""


def test_bytes_that_the_kernel_does_not_accept_are_kept_in_order() -> None:
    with connected() as (wire, stream, theirs):
        large = bytes(range(256)) * 16_384
        wire.write([large])
        assert 0 < len(stream.written) < len(large)
        taken = drain(theirs)  # from here on the kernel would take something
        wire.write([b"later"])
        assert drain(theirs) == b""
        assert taken + bytes(stream.written) == large + b"later"


def test_a_broken_socket_is_left_to_pika() -> None:
    with connected() as (wire, stream, theirs):
        theirs.close()
        wire.write([b"lost"])
        assert stream.written == b"lost"
