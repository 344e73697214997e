"""Connections to a broker: one connection from opening to end, and the connector that replaces lost ones.

A connection is never repaired. `lost` and `blocked` say why nothing can be sent over it; either fails everything
unconfirmed at once. A blocked connection stays open, because the broker unblocks it there.

Every request to the broker has a timeout. If it expires, the connector drops the connection, so that no later request
receives the late reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from pillarbox.core.clock import Duration
from pillarbox.core.errors import UnavailableError
from pillarbox.timeouts import StallWatch
from pillarbox.transports.rabbitmq.declaring import ExistingQueues, SecondDeclaration, declare
from pillarbox.transports.rabbitmq.driver import Channel, ConnectionMethods, Method, Wire, reason_of
from pillarbox.transports.rabbitmq.plugin import BrokerEndpoint, positive
from pillarbox.transports.rabbitmq.publisher import Publisher
from pillarbox.transports.rabbitmq.topology import Declaration

C = TypeVar("C", bound=Channel)
T = TypeVar("T")

_CLOSE_TIMEOUT = 2.0
"""Seconds to wait for the broker's reply to a close before the connection is cut."""


class RabbitMQConnection:
    """One connection with its channels. Opened once, closed once."""

    def __init__(
        self, endpoint: BrokerEndpoint, *, heartbeat: float, reply_timeout: float, existing: ExistingQueues
    ) -> None:
        self._endpoint = endpoint
        self.existing = existing
        """What is told of queues that exist with other arguments."""
        self._heartbeat = heartbeat
        self._reply_timeout = reply_timeout
        self.waiting = StallWatch(reply_timeout, lambda: self.progress, self.abort_unresponsive)
        """The context of work that may take long: the connection is cut if, for `reply_timeout`, neither bytes leave
        nor confirms arrive. On a slow connection, what is on its way must not be sent twice."""
        self._wire: Wire | None = None
        self._opened: asyncio.Future[None] | None = None
        self._free: list[Publisher] = []
        self._busy: set[Channel] = set()
        self.closed = asyncio.Event()
        """Set when the socket is closed."""
        self.lost: UnavailableError | None = None
        self.blocked: UnavailableError | None = None
        self.unresponsive = False
        """Whether the connection was cut because the broker did not respond over it."""
        self.declared = False
        """Whether the topology was declared and is not known to have changed since."""
        self.queues: set[str] = set()
        """Queues that were declared by their names alone and are not known to be deleted since."""
        self.declaring_queues = asyncio.Lock()

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
        """Close a channel without waiting for the broker's reply."""
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
        left: list[Declaration | SecondDeclaration] = list(declarations)
        while left:
            async with self.channel() as channel:
                left = await declare(channel, left, self.existing)
        self.declared = True

    def forget_declared(self, queues: Iterable[str] = ()) -> None:
        """Declare the configured topology and these queues again before the next batch: they may have been deleted."""
        self.declared = False
        self.queues.difference_update(queues)

    async def round_trip(self) -> None:
        """Wait for a reply of the broker. Raises UnavailableError."""
        async with self.channel():
            return

    def abort_unresponsive(self) -> UnavailableError:
        """The broker did not respond in time: cut the connection. Returns the error of everything unconfirmed."""
        error = UnavailableError(f"RabbitMQ at {self._endpoint} did not respond within {self._reply_timeout:g} s")
        self.unresponsive = self.unresponsive or self.lost is None
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
            "then sending resumes"
        )
        for channel in self._busy:
            channel.fail(self.blocked)

    def _on_unblocked(self, _: Wire, frame: Method[ConnectionMethods.Unblocked]) -> None:
        self.blocked = None


class RabbitMQConnector:
    """One connection at a time, opened on demand; `what` it belongs to is named in the error once it is closed."""

    def __init__(
        self,
        endpoint: BrokerEndpoint,
        *,
        heartbeat: Duration,
        connect_timeout: Duration,
        reply_timeout: Duration,
        what: str,
    ) -> None:
        """Raises ConfigurationError for a timeout that is not positive."""
        self._endpoint = endpoint
        self._node = 0
        """Which of the nodes is tried next."""
        # AMQP counts whole seconds; 0 switches it off.
        self._heartbeat = 0.0 if heartbeat == "never" else max(1.0, positive("heartbeat", heartbeat))
        self._connect_timeout = positive("connect_timeout", connect_timeout)
        self._reply_timeout = positive("reply_timeout", reply_timeout)
        self._what = what
        self._existing = ExistingQueues(endpoint)
        self.connection: RabbitMQConnection | None = None
        """The connection in use."""
        self._opening = asyncio.Lock()
        self._closed = False

    async def ready(self, declarations: Sequence[Declaration]) -> RabbitMQConnection:
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

    async def in_time(self, connection: RabbitMQConnection, work: Awaitable[T]) -> T:
        """Do the work within the timeout for replies, or drop the connection. Raises UnavailableError."""
        try:
            async with asyncio.timeout(self._reply_timeout):
                return await work
        except TimeoutError:
            raise connection.abort_unresponsive() from None

    @property
    def progress(self) -> object:
        """A value that changes whenever bytes leave or a confirm arrives."""
        return None if self.connection is None else (id(self.connection), self.connection.progress)

    def check_open(self) -> None:
        """Raise UnavailableError once the connector is closed."""
        if self._closed:
            raise self._closed_error()

    async def aclose(self) -> None:
        """Close the connection; pending requests raise UnavailableError. Closing twice is fine."""
        self._closed = True
        if self.connection is not None:
            await self.connection.aclose(self._closed_error())

    async def _connected(self) -> RabbitMQConnection:
        self.check_open()
        if self.connection is None or self.connection.lost is not None:
            self.connection = await self._connect()
        self.connection.check()
        return self.connection

    async def _connect(self) -> RabbitMQConnection:
        """Connect to the first node that responds, beginning with the one that did so last.

        If that one stopped to respond, it comes last: in the minority of a cluster, a node still accepts connections.
        """
        failures: list[str] = []
        if self.connection is not None and self.connection.unresponsive:
            self._node = (self._node + 1) % len(self._endpoint.nodes)
        for _ in self._endpoint.nodes:
            if self.connection is not None:
                await self.connection.closed.wait()
            self.check_open()
            node = self._endpoint.nodes[self._node]
            connection = self.connection = RabbitMQConnection(
                node,
                heartbeat=self._heartbeat,
                reply_timeout=self._reply_timeout,
                existing=self._existing,
            )
            # The next attempt begins with the next node, also if this one is cancelled.
            self._node = (self._node + 1) % len(self._endpoint.nodes)
            try:
                await self._open(connection, node)
            except UnavailableError as error:
                failures.append(str(error))
            else:
                self._node = self._endpoint.nodes.index(node)
                return connection
        raise UnavailableError("; ".join(failures))

    async def _open(self, connection: RabbitMQConnection, node: BrokerEndpoint) -> None:
        within = self._connect_timeout / len(self._endpoint.nodes)
        try:
            async with asyncio.timeout(within):
                await connection.open()
        except TimeoutError:
            connection.abort(UnavailableError(f"no connection to RabbitMQ at {node} within {within:g} s"))
        except asyncio.CancelledError:
            connection.abort(UnavailableError("connecting was cancelled"))
            raise
        connection.check()

    def _closed_error(self) -> UnavailableError:
        return UnavailableError(f"the {self._what} to RabbitMQ at {self._endpoint} is closed")
