"""Connections to Redis: one connection from opening to end, and the connector that replaces lost ones.

hiredis parses the replies and packs the commands. The socket is ours: a client library would collect the replies of a
pipeline and, if the connection is lost in the middle, drop those that arrived; or it would send the pipeline again.
Here every command is written once, and the replies that arrived before the loss count.

Redis replies to the commands of a connection in their order. So many callers share one connection: each waits for its
own replies, and a caller that is cancelled leaves its replies to be skipped.

A connection is never repaired: once it is `lost`, everything without a reply fails, and the connector opens another.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, cast

try:
    import hiredis
    from hiredis import ProtocolError, Reader
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('Redis needs hiredis: pip install "pillarbox[redis]"') from missing

from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.timeouts import StallWatch
from pillarbox.transports.redis.plugin import RedisEndpoint

Argument = str | bytes | int
_pack: Callable[[tuple[Argument, ...]], bytes] = cast(Any, hiredis).pack_command
Prepare = Callable[["RedisConnection"], Awaitable[None]]
_NO_ERROR_CODE = "ERR"


class ErrorReply(Exception):
    """An error as Redis sent it."""

    def __init__(self, text: str) -> None:
        # An unknown command is quoted with its arguments, among them passwords and payloads.
        super().__init__(text.partition(", with args")[0].strip())

    @property
    def code(self) -> str:
        """The first word, such as WRONGTYPE; ERR if there is none."""
        word = str(self).partition(" ")[0]
        return word if word.isupper() and word.isalnum() else _NO_ERROR_CODE


class Replies:
    """The replies to the commands of one call, in order. `lost`: why the rest will not arrive."""

    __slots__ = ("done", "expected", "lost", "received")

    def __init__(self, expected: int, done: asyncio.Future[None]) -> None:
        self.expected = expected
        self.received: list[Any] = []
        self.done = done
        self.lost: UnavailableError | None = None

    def finish(self, lost: UnavailableError | None = None) -> None:
        self.lost = lost
        if not self.done.done():
            self.done.set_result(None)


def pack(*command: Argument) -> bytes:
    """A command as it is sent. Raises UnicodeEncodeError for a text that is not UTF-8, TypeError."""
    return _pack(command)


class RedisConnection(asyncio.Protocol):
    """One connection. Opened once, closed once."""

    def __init__(self, endpoint: RedisEndpoint, *, reply_timeout: float) -> None:
        self._endpoint = endpoint
        self._reply_timeout = reply_timeout
        self._reader = Reader(protocolError=ProtocolError, replyError=ErrorReply)
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[Replies] = deque()
        self._written = 0
        self._received = 0
        self.closed = asyncio.Event()
        """Set when the socket is closed, or was never opened."""
        self.lost: UnavailableError | None = None
        self.on_lost: Callable[[UnavailableError], None] | None = None
        self.server: Mapping[str, str] = {}
        """What the server says of itself: version, role, mode."""
        self.in_time = StallWatch(reply_timeout, lambda: self.progress, self.abort_unresponsive)
        """The context of a wait for replies: the connection is cut if, for `reply_timeout`, no bytes leave or arrive.
        On a slow connection, what is on its way must not be sent twice."""

    @property
    def progress(self) -> tuple[int, int]:
        """Bytes that arrived, and bytes that left, since the connection was opened."""
        buffered = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return self._received, self._written - buffered

    async def open(self) -> None:
        """Connect, authenticate and select the database. Raises UnavailableError."""
        endpoint = self._endpoint
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: self,
                endpoint.host,
                endpoint.port,
                ssl=endpoint.tls,
                server_hostname=None if endpoint.tls is None else endpoint.host,
            )
        except (OSError, UnicodeError) as error:
            self._fail(UnavailableError(f"cannot connect to Redis at {endpoint}: {_reason(error)}"))
            self.closed.set()
        self.check()
        auth: tuple[Argument, ...] = () if endpoint.password is None else ("AUTH", endpoint.user, endpoint.password)
        commands = [pack("HELLO", 2, *auth, "SETNAME", "pillarbox")]
        if endpoint.database:
            commands.append(pack("SELECT", endpoint.database))
        replies = await self.pipeline(commands)
        for reply in replies.received:
            if isinstance(reply, ErrorReply):
                refused = UnavailableError(f"Redis at {endpoint} refuses the connection: {reply}")
                self.abort(refused)
                raise refused
        self.check()
        facts = iter(replies.received[0])
        self.server = {_text(name): _text(value) for name, value in zip(facts, facts, strict=True)}

    def check(self) -> None:
        """Raise UnavailableError if the connection is lost."""
        if self.lost is not None:
            raise self.lost

    def submit(self, commands: Iterable[bytes], expected: int) -> Replies:
        """Write packed commands; the replies arrive later. Raises UnavailableError, and then writes nothing."""
        if self.lost is not None or self._transport is None:
            raise self.lost or UnavailableError(f"the connection to Redis at {self._endpoint} is not open yet")
        replies = Replies(expected, asyncio.get_running_loop().create_future())
        if not expected:
            replies.finish()
            return replies
        data = b"".join(commands)
        self._written += len(data)
        self._waiting.append(replies)
        self._transport.write(data)
        return replies

    async def pipeline(self, commands: list[bytes]) -> Replies:
        """Write packed commands and wait for all replies, or for the loss of the connection. Raises UnavailableError if
        nothing was written."""
        replies = self.submit(commands, len(commands))
        with self.in_time:
            await replies.done
        return replies

    async def call(self, *command: Argument, block: float = 0.0) -> Any:
        """The reply to one command. Raises ErrorReply, UnavailableError.

        block: seconds for which the command waits in Redis, which do not count for `reply_timeout`.
        """
        replies = self.submit([pack(*command)], 1)
        if block:
            await asyncio.wait({replies.done}, timeout=block)
        with self.in_time:
            await replies.done
        if replies.lost is not None:
            raise replies.lost
        [reply] = replies.received
        if isinstance(reply, ErrorReply):
            raise reply
        return reply

    def abort_unresponsive(self) -> UnavailableError:
        """The server did not reply in time: cut the connection. Returns the error of everything without a reply."""
        error = UnavailableError(f"Redis at {self._endpoint} did not reply within {self._reply_timeout:g} s")
        self.abort(error)
        return error

    def abort(self, reason: UnavailableError) -> None:
        """Cut the connection at once; everything without a reply fails for this reason."""
        self._fail(reason)
        if self._transport is not None:
            self._transport.abort()
        else:
            self.closed.set()

    def _fail(self, reason: UnavailableError) -> None:
        if self.lost is None:
            self.lost = reason
        while self._waiting:
            self._waiting.popleft().finish(self.lost)
        if self.on_lost is not None:
            on_lost, self.on_lost = self.on_lost, None
            on_lost(self.lost)

    # -- asyncio.Protocol -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if (raw := transport.get_extra_info("socket")) is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self.lost is not None:  # aborted while it was opened
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        reader, waiting = self._reader, self._waiting
        self._received += len(data)
        try:
            reader.feed(data)
            while waiting:
                replies = waiting[0]
                received, expected = replies.received, replies.expected
                while len(received) < expected and (reply := reader.gets()) is not False:
                    received.append(reply)
                if len(received) < expected:
                    return
                waiting.popleft().finish()
        except ProtocolError as error:
            self.abort(UnavailableError(f"Redis at {self._endpoint} does not speak its protocol: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        reason = "it closed the connection" if exc is None else _reason(exc)
        self._fail(UnavailableError(f"lost the connection to Redis at {self._endpoint}: {reason}"))
        self.closed.set()


class RedisConnector:
    """One connection at a time, opened on demand; `what` it belongs to is named in the error once it is closed."""

    def __init__(
        self,
        endpoint: RedisEndpoint,
        *,
        connect_timeout: Duration,
        reply_timeout: Duration,
        what: str,
        prepare: Prepare | None = None,
    ) -> None:
        """prepare: called with every new connection. Raises ConfigurationError for a timeout that is not positive."""
        self.endpoint = endpoint
        self._connect_timeout = positive("connect_timeout", connect_timeout)
        self.reply_timeout = positive("reply_timeout", reply_timeout)
        self._what = what
        self._prepare = prepare
        self.connection: RedisConnection | None = None
        """The connection in use."""
        self._opening = asyncio.Lock()
        self._closed = False

    @property
    def progress(self) -> object:
        """A value that changes whenever bytes leave or arrive."""
        return None if self.connection is None else (id(self.connection), self.connection.progress)

    async def ready(self) -> RedisConnection:
        """The connection. Raises UnavailableError."""
        if (connection := self.connection) is not None and connection.lost is None:
            return connection
        async with self._opening:
            self.check_open()
            if (connection := self.connection) is not None and connection.lost is None:
                return connection
            connection = RedisConnection(self.endpoint, reply_timeout=self.reply_timeout)
            await self._open(connection)
            self.connection = connection
            return connection

    def check_open(self) -> None:
        """Raise UnavailableError once the connector is closed."""
        if self._closed:
            raise self._closed_error()

    async def aclose(self) -> None:
        """Close the connection; what has no reply yet fails with UnavailableError. Closing twice is fine."""
        self._closed = True
        if self.connection is not None:
            self.connection.abort(self._closed_error())
            await self.connection.closed.wait()

    async def _open(self, connection: RedisConnection) -> None:
        try:
            async with asyncio.timeout(self._connect_timeout):
                await connection.open()
                if self._prepare is not None:
                    await self._prepare(connection)
        except TimeoutError:
            late = UnavailableError(f"no connection to Redis at {self.endpoint} within {self._connect_timeout:g} s")
            connection.abort(late)
            raise late from None
        except BaseException:
            connection.abort(UnavailableError("connecting was cancelled"))
            raise
        if self._closed:
            connection.abort(self._closed_error())
            raise self._closed_error()

    def _closed_error(self) -> UnavailableError:
        return UnavailableError(f"the {self._what} to Redis at {self.endpoint} is closed")


def positive(name: str, duration: Duration) -> float:
    """The duration in seconds. Raises ConfigurationError if it is not positive."""
    if (number := seconds(duration, field=name)) > 0:
        return number
    raise ConfigurationError(f"{name} is {duration!r}; it must be greater than zero")


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    return str(error) or type(error).__name__
