"""Connections to a broker: its endpoint, one connection from opening to end, and the manager that replaces lost ones.

A connection is never repaired. `lost` and `blocked` tell why nothing can be sent over it; either fails everything
unconfirmed at once. A blocked connection stays open, because the broker unblocks it there.

Every request to the broker has a timeout. If it expires, the manager drops the connection, so that no later request
receives the late answer.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.timeouts import StallWatch
from pillarbox.transports.rabbitmq.driver import (
    Channel,
    ConnectionMethods,
    ConnectionParameters,
    Method,
    PlainCredentials,
    Second,
    SSLOptions,
    Wire,
    declare,
    reason_of,
)
from pillarbox.transports.rabbitmq.publisher import Publisher
from pillarbox.transports.rabbitmq.topology import Declaration, Queue

C = TypeVar("C", bound=Channel)
T = TypeVar("T")

_PORTS = {"amqp": 5672, "amqps": 5671}
_CLOSE_TIMEOUT = 2.0
"""Seconds to wait for the broker's answer to a close before the connection is cut."""
CHANNELS = 5
"""Channels over which queues are declared at once: 3 times as fast as one; more are no faster."""
_Queues = deque[tuple[str, Declaration | Second | None]]
"""Names of queues to declare; a queue that exists with other arguments comes again, with its second declaration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One broker, one virtual host, one user. `str` shows neither user nor password. Over `amqps` certificate and host
    name are verified."""

    host: str
    port: int
    vhost: str
    user: str = field(repr=False)
    password: str = field(repr=False)
    tls: ssl.SSLContext | None = field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}, virtual host {self.vhost!r}"

    def parameters(self, *, heartbeat: float) -> ConnectionParameters:
        """pika's parameters: one attempt without timeouts. The relay retries, and the caller limits the time."""
        return ConnectionParameters(
            host=self.host,
            port=self.port,
            virtual_host=self.vhost,
            credentials=PlainCredentials(self.user, self.password),
            ssl_options=None if self.tls is None else SSLOptions(self.tls, self.host),
            heartbeat=round(heartbeat),
            connection_attempts=1,
            retry_delay=0,
            socket_timeout=None,
            stack_timeout=None,
            client_properties={"connection_name": "pillarbox"},
        )


def endpoint_of(url: str, tls: ssl.SSLContext | None = None) -> Endpoint:
    """Parse `amqp://user:password@host:port/vhost`. Raises ConfigurationError, which never quotes the URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigurationError("host or port in the broker's URL cannot be read") from None
    if parts.scheme not in _PORTS:
        raise ConfigurationError("the broker's URL must begin with amqp:// or amqps://, as in amqp://app@mq:5672/%2F")
    if parts.query or parts.fragment:
        raise ConfigurationError("the broker's URL takes no options after the virtual host; pass them as arguments")
    if "@" in parts.path:
        # A / in the password has cut the URL in two: what looks like a virtual host is the password's end.
        raise ConfigurationError("user, password and host in the broker's URL cannot be told apart; write / as %2F")
    vhost = parts.path.removeprefix("/")
    if "/" in vhost:
        raise ConfigurationError("a slash in the virtual host's name is written %2F in the broker's URL")
    if parts.scheme == "amqp" and tls is not None:
        raise ConfigurationError("a TLS context needs a URL that begins with amqps://")
    if parts.scheme == "amqps" and tls is None:
        tls = ssl.create_default_context()
    return Endpoint(
        host=parts.hostname or "localhost",
        port=port or _PORTS[parts.scheme],
        vhost=unquote(vhost) or "/",
        user=unquote(parts.username or "guest"),
        password=unquote(parts.password if parts.password is not None else "" if parts.username else "guest"),
        tls=tls,
    )


class Connection:
    """One connection with its channels. Opened once, closed once."""

    def __init__(self, endpoint: Endpoint, *, heartbeat: float, answer_timeout: float) -> None:
        self._endpoint = endpoint
        self._heartbeat = heartbeat
        self._answer_timeout = answer_timeout
        self.waiting = StallWatch(answer_timeout, lambda: self.progress, self.unanswered)
        """The context of work that may take long: the connection is cut if, for `answer_timeout`, neither bytes leave
        nor confirms arrive. On a slow connection, what is on its way must not be sent twice."""
        self._wire: Wire | None = None
        self._opened: asyncio.Future[None] | None = None
        self._free: list[Publisher] = []
        self._busy: set[Channel] = set()
        self.closed = asyncio.Event()
        """Set when the socket is closed."""
        self.lost: UnavailableError | None = None
        self.blocked: UnavailableError | None = None
        self.declared = False
        """Whether the topology was declared and is not known to have changed since."""
        self._queues: set[str] = set()
        self._declaring = asyncio.Lock()

    @property
    def ready(self) -> bool:
        return self.lost is None and self.blocked is None and self.declared

    def check(self) -> None:
        """Raise UnavailableError if the connection is lost or blocked."""
        if (trouble := self.lost or self.blocked) is not None:
            raise trouble

    @property
    def wire(self) -> Wire:
        """The open connection of pika. Raises UnavailableError."""
        self.check()
        if self._wire is None:
            raise UnavailableError(f"the connection to RabbitMQ at {self._endpoint} is not open yet")
        return self._wire

    @property
    def progress(self) -> tuple[int, int]:
        """Confirms received, and bytes that left, since the connection was opened."""
        return (0, 0) if self._wire is None else (self._wire.confirmed, self._wire.transmitted)

    async def open(self) -> None:
        """Raises UnavailableError."""
        self._opened = asyncio.get_running_loop().create_future()
        self._wire = Wire(
            self._endpoint.parameters(heartbeat=self._heartbeat),
            on_open_callback=self._on_open,
            on_open_error_callback=self._on_end,
            on_close_callback=self._on_end,
        )
        self._wire.add_on_connection_blocked_callback(self._on_blocked)
        self._wire.add_on_connection_unblocked_callback(self._on_unblocked)
        await self._opened

    async def open_channel(self, kind: type[C]) -> C:
        """Open a channel that fails when the connection is lost or blocked. Raises ChannelRefused, UnavailableError."""
        channel = kind(self.wire)
        self._busy.add(channel)
        try:
            await channel.open()
        except BaseException:
            # A channel that is open but not yet in confirm mode must not be used by others.
            self.close_channel(channel)
            raise
        return channel

    def close_channel(self, channel: Channel) -> None:
        """Close a channel without waiting for the broker's answer."""
        self._busy.discard(channel)
        channel.close()

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[Channel]:
        """A channel for a few requests: the broker closes it when it refuses one."""
        channel = await self.open_channel(Channel)
        try:
            yield channel
        finally:
            self.close_channel(channel)

    async def publisher(self) -> Publisher:
        """A publisher for exclusive use until `put_back`. Raises ChannelRefused, UnavailableError."""
        self.check()
        while self._free:
            if (publisher := self._free.pop()).idle:
                self._busy.add(publisher)
                return publisher
        return await self.open_channel(Publisher)

    def put_back(self, publisher: Publisher) -> None:
        """Return a publisher to the pool; close it if its batch is unfinished."""
        if publisher.idle:
            self._busy.discard(publisher)
            self._free.append(publisher)
        else:
            self.close_channel(publisher)

    async def declare(self, declarations: Sequence[Declaration]) -> None:
        """Raises ConfigurationError, UnavailableError."""
        left: list[Declaration | Second] = list(declarations)
        while left:
            async with self.channel() as channel:
                left = await declare(channel, left)
        self.declared = True

    def has_queue(self, name: str) -> bool:
        """Whether `declare_queues` declared it, and it is not known to be gone since."""
        return name in self._queues

    async def declare_queues(self, names: Iterable[str]) -> dict[str, ConfigurationError | UnavailableError]:
        """Declare durable quorum queues of these names, each once per connection and several at a time; returns the
        errors of those that could not be declared. Raises UnavailableError."""
        refused: dict[str, ConfigurationError | UnavailableError] = {}
        # A second declaration would be told that the queue exists before it does, and the first message be nacked.
        async with self._declaring:
            left: _Queues = deque((name, None) for name in names if name not in self._queues)
            await asyncio.gather(*(self._declare_in_turn(left, refused) for _ in range(min(CHANNELS, len(left)))))
        return refused

    async def _declare_in_turn(self, left: _Queues, refused: dict[str, ConfigurationError | UnavailableError]) -> None:
        """Declare one after another over one channel, and over a new one when the broker closed it."""
        while left:
            async with self.channel() as channel:
                while left and channel.failure is None:
                    name, second = left.popleft()
                    try:
                        again = await declare(channel, [second or Queue(name=name)])
                    except (ConfigurationError, UnavailableError) as error:
                        refused[name] = error
                        continue
                    left.extend((name, other) for other in again)
                    if not again:
                        self._queues.add(name)

    def forget_declared(self, queues: Iterable[str] = ()) -> None:
        """Declare the configured topology and these queues again before the next batch: they may be gone."""
        self.declared = False
        self._queues.difference_update(queues)

    async def round_trip(self) -> None:
        """Wait for an answer of the broker. Raises UnavailableError."""
        async with self.channel():
            return

    def unanswered(self) -> UnavailableError:
        """The broker did not answer in time: cut the connection. Returns the error of everything unconfirmed."""
        error = UnavailableError(f"RabbitMQ at {self._endpoint} did not answer within {self._answer_timeout:g} s")
        self.abort(error)
        return error

    def abort(self, reason: UnavailableError) -> None:
        """Cut the connection at once; everything unconfirmed fails for this reason."""
        if self.lost is None:
            self._fail(reason)
            if self._wire is not None:
                self._wire.abort()
            else:
                self.closed.set()

    async def aclose(self, reason: UnavailableError) -> None:
        """Close the connection if the broker listens, else cut it; return when the socket is closed."""
        if self.lost is None and self.blocked is None and self._wire is not None and self._wire.is_open:
            self._fail(reason)
            self._wire.close()
            try:
                async with asyncio.timeout(_CLOSE_TIMEOUT):
                    await self.closed.wait()
            except TimeoutError:
                self._wire.abort()
            except asyncio.CancelledError:
                self._wire.abort()
                raise
        else:
            self.abort(reason)
        await self.closed.wait()

    def _fail(self, reason: UnavailableError) -> None:
        self.lost = reason
        self._free.clear()
        for channel in self._busy:
            channel.fail(reason)
        if self._opened is not None and not self._opened.done():
            self._opened.set_exception(reason)

    def _on_open(self, _: Wire) -> None:
        if self._opened is not None and not self._opened.done():
            self._opened.set_result(None)

    def _on_end(self, wire: Wire, error: BaseException) -> None:
        what = "lost the connection to" if self._opened is not None and self._opened.done() else "cannot connect to"
        if self.lost is None:
            self._fail(UnavailableError(f"{what} RabbitMQ at {self._endpoint}: {reason_of(error)}"))
        self.closed.set()

    def _on_blocked(self, _: Wire, frame: Method[ConnectionMethods.Blocked]) -> None:
        self.blocked = UnavailableError(
            f"RabbitMQ at {self._endpoint} is blocked ({frame.method.reason}); free memory or disk there, "
            "then it continues by itself"
        )
        for channel in self._busy:
            channel.fail(self.blocked)

    def _on_unblocked(self, _: Wire, frame: Method[ConnectionMethods.Unblocked]) -> None:
        self.blocked = None


class ConnectionManager:
    """One connection at a time, opened on demand; `what` it belongs to is named in the error once it is closed."""

    def __init__(
        self, endpoint: Endpoint, *, heartbeat: Duration, connect_timeout: Duration, answer_timeout: Duration, what: str
    ) -> None:
        """Raises ConfigurationError for a timeout that is not positive."""
        self._endpoint = endpoint
        self._heartbeat = seconds(heartbeat, field="heartbeat")
        self._connect_timeout = positive("connect_timeout", connect_timeout)
        self._answer_timeout = positive("answer_timeout", answer_timeout)
        self._what = what
        self.connection: Connection | None = None
        """The connection in use."""
        self._opening = asyncio.Lock()
        self._closed = False

    async def ready(self, declarations: Sequence[Declaration]) -> Connection:
        """The connection, topology declared. Raises UnavailableError, ConfigurationError."""
        if (connection := self.connection) is not None and connection.ready:
            return connection
        async with self._opening:
            connection = await self._connected()
            if not connection.declared:
                await self.in_time(connection, connection.declare(declarations))
            return connection

    async def declare(self, declarations: Sequence[Declaration]) -> None:
        """Declare all of it, whatever was declared before. Raises UnavailableError, ConfigurationError."""
        async with self._opening:
            connection = await self._connected()
            await self.in_time(connection, connection.declare(declarations))

    async def in_time(self, connection: Connection, work: Awaitable[T]) -> T:
        """Do the work within the timeout for answers, or drop the connection. Raises UnavailableError."""
        try:
            async with asyncio.timeout(self._answer_timeout):
                return await work
        except TimeoutError:
            raise connection.unanswered() from None

    @property
    def progress(self) -> object:
        """A value that changes whenever bytes leave or a confirm arrives."""
        return None if self.connection is None else (id(self.connection), self.connection.progress)

    def check_open(self) -> None:
        """Raise UnavailableError once the manager is closed."""
        if self._closed:
            raise self._closed_error()

    async def aclose(self) -> None:
        """Close the connection; pending requests raise UnavailableError. Closing twice is fine."""
        self._closed = True
        if self.connection is not None:
            await self.connection.aclose(self._closed_error())

    async def _connected(self) -> Connection:
        self.check_open()
        connection = self.connection
        if connection is None or connection.lost is not None:
            if connection is not None:
                await connection.closed.wait()
            self.check_open()
            connection = self.connection = Connection(
                self._endpoint, heartbeat=self._heartbeat, answer_timeout=self._answer_timeout
            )
            try:
                async with asyncio.timeout(self._connect_timeout):
                    await connection.open()
            except TimeoutError:
                connection.abort(
                    UnavailableError(
                        f"no connection to RabbitMQ at {self._endpoint} within {self._connect_timeout:g} s"
                    )
                )
            except asyncio.CancelledError:
                connection.abort(UnavailableError("connecting was cancelled"))
                raise
        connection.check()
        return connection

    def _closed_error(self) -> UnavailableError:
        return UnavailableError(f"the {self._what} to RabbitMQ at {self._endpoint} is closed")


def at_least_one(name: str, number: int) -> int:
    """The number. Raises ConfigurationError if it is not a whole number from 1."""
    if type(number) is not int or number < 1:
        raise ConfigurationError(f"{name} is {number!r}; a whole number from 1")
    return number


def positive(name: str, duration: Duration) -> float:
    """The duration in seconds. Raises ConfigurationError if it is not positive."""
    if (number := seconds(duration, field=name)) > 0:
        return number
    raise ConfigurationError(f"{name} is {duration!r}; it must be longer than nothing")
