"""One connection, from its opening to its end. It is never repaired: a lost one is replaced by a new one.

`lost` and `blocked` tell why nothing can be sent over it; either fails everything unconfirmed at once. A blocked one
stays open, because the broker says on it when it may be used again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.transports.rabbitmq.channel import Channel
from pillarbox.transports.rabbitmq.declaring import Second, declare
from pillarbox.transports.rabbitmq.driver import ConnectionMethods, Method, Wire, parameters_of, reason_of
from pillarbox.transports.rabbitmq.endpoint import Endpoint
from pillarbox.transports.rabbitmq.publisher import Publisher
from pillarbox.transports.rabbitmq.topology import Declaration, Queue

_GOODBYE = 2.0
"""Seconds to wait for the broker's goodbye before the connection is cut."""
CHANNELS = 5
"""Channels over which queues are declared at once: 3 times as fast as one, and more of them are no faster."""
_Queues = deque[tuple[str, Declaration | Second | None]]
"""Names of queues to be declared; those that exist otherwise come once more, with what to declare instead."""


class Connection:
    """One connection with its publishers. Opened once, closed once."""

    def __init__(self, endpoint: Endpoint, *, heartbeat: float) -> None:
        self._endpoint = endpoint
        self._parameters = parameters_of(endpoint, heartbeat=heartbeat)
        self._wire: Wire | None = None
        self._opened: asyncio.Future[None] | None = None
        self._free: list[Publisher] = []
        self._busy: set[Publisher | Channel] = set()
        self._gone = asyncio.Event()
        self._confirmed = 0
        self.lost: UnavailableError | None = None
        self.blocked: UnavailableError | None = None
        self.declared = False
        """Whether the topology was declared, and nothing since spoke against it."""
        self._queues: set[str] = set()
        self._declaring = asyncio.Lock()

    @property
    def ready(self) -> bool:
        return self.lost is None and self.blocked is None and self.declared

    def check(self) -> None:
        """Raise what keeps it from being used."""
        if (trouble := self.lost or self.blocked) is not None:
            raise trouble

    @property
    def progress(self) -> tuple[int, int]:
        """Messages confirmed, and bytes that left, since it was opened."""
        return self._confirmed, 0 if self._wire is None else self._wire.transmitted

    async def open(self) -> None:
        """Raises UnavailableError."""
        self._opened = asyncio.get_running_loop().create_future()
        self._wire = Wire(
            self._parameters,
            on_open_callback=self._on_open,
            on_open_error_callback=self._on_end,
            on_close_callback=self._on_end,
        )
        self._wire.add_on_connection_blocked_callback(self._on_blocked)
        self._wire.add_on_connection_unblocked_callback(self._on_unblocked)
        await self._opened

    async def declare(self, declarations: Sequence[Declaration]) -> None:
        """Raises ConfigurationError, UnavailableError."""
        left: list[Declaration | Second] = list(declarations)
        while left:
            async with self._channel() as channel:
                left = await declare(channel, self._endpoint, left)
        self.declared = True

    def has_queue(self, name: str) -> bool:
        """Whether `declare_queues` declared it, and nothing since spoke against it."""
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
            async with self._channel() as channel:
                while left and channel.failure is None:
                    name, second = left.popleft()
                    try:
                        again = await declare(channel, self._endpoint, [second or Queue(name=name)])
                    except (ConfigurationError, UnavailableError) as error:
                        refused[name] = error
                        continue
                    left.extend((name, other) for other in again)
                    if not again:
                        self._queues.add(name)

    def doubt(self, queues: Iterable[str] = ()) -> None:
        """The configured topology, or one of these queues, may be gone: declare it again before the next batch."""
        self.declared = False
        self._queues.difference_update(queues)

    @property
    def wire(self) -> Wire:
        self.check()
        if self._wire is None:
            raise UnavailableError(f"the connection to RabbitMQ at {self._endpoint} is not open yet")
        return self._wire

    async def publisher(self) -> Publisher:
        """A publisher to oneself until it is `put_back`. Raises UnavailableError."""
        self.check()
        while self._free:
            if (publisher := self._free.pop()).idle:
                self._busy.add(publisher)
                return publisher
        publisher = Publisher(self._endpoint, on_confirm=self._on_confirm)
        self._busy.add(publisher)
        try:
            await publisher.open(self.wire)
        except BaseException:
            # It may be open and not yet confirm anything: nobody is to take it for one that does.
            self._busy.discard(publisher)
            publisher.close()
            raise
        return publisher

    def put_back(self, publisher: Publisher) -> None:
        """Leave it to others; one that is in the middle of something is closed."""
        self._busy.discard(publisher)
        if publisher.idle:
            self._free.append(publisher)
        else:
            publisher.close()

    async def adopt(self, channel: Channel) -> None:
        """Open a channel that shares the fate of the connection. Raises UnavailableError."""
        wire = self.wire
        self._busy.add(channel)
        await channel.open(wire)

    async def depth(self, queue: str) -> int:
        """How many messages are ready in a queue. Raises ChannelRefused if there is none, UnavailableError."""
        async with self._channel() as channel:
            found = await channel.call(channel.raw.queue_declare, queue=queue, passive=True)
            return int(found.method.message_count)

    async def round_trip(self) -> None:
        """Ask the broker something. Raises UnavailableError."""
        async with self._channel():
            return

    @asynccontextmanager
    async def _channel(self) -> AsyncIterator[Channel]:
        channel = Channel(self._endpoint)
        self._busy.add(channel)
        try:
            await channel.open(self.wire)
            yield channel
        finally:
            self._busy.discard(channel)
            channel.close()

    def let_go(self, reason: UnavailableError) -> None:
        """Cut the connection at once; everything unconfirmed fails for this reason."""
        if self.lost is None:
            self._fail(reason)
            if self._wire is not None:
                self._wire.let_go()
            else:
                self._gone.set()

    async def aclose(self, reason: UnavailableError) -> None:
        """Say goodbye if the broker listens, else cut; return when the socket is closed."""
        if self.lost is None and self.blocked is None and self._wire is not None and self._wire.is_open:
            self._fail(reason)
            self._wire.close()
            try:
                async with asyncio.timeout(_GOODBYE):
                    await self._gone.wait()
            except TimeoutError:
                self._wire.let_go()
            except asyncio.CancelledError:
                self._wire.let_go()
                raise
        else:
            self.let_go(reason)
        await self.gone()

    async def gone(self) -> None:
        """Return when the socket is closed."""
        await self._gone.wait()

    def _fail(self, reason: UnavailableError) -> None:
        self.lost = reason
        self._free.clear()
        for waiting in self._busy:
            waiting.fail(reason)
        if self._opened is not None and not self._opened.done():
            self._opened.set_exception(reason)

    def _on_confirm(self) -> None:
        self._confirmed += 1

    def _on_open(self, _: Wire) -> None:
        if self._opened is not None and not self._opened.done():
            self._opened.set_result(None)

    def _on_end(self, wire: Wire, error: BaseException) -> None:
        what = "lost the connection to" if self._opened is not None and self._opened.done() else "cannot connect to"
        if self.lost is None:
            self._fail(UnavailableError(f"{what} RabbitMQ at {self._endpoint}: {reason_of(error)}"))
        self._gone.set()

    def _on_blocked(self, _: Wire, frame: Method[ConnectionMethods.Blocked]) -> None:
        self.blocked = UnavailableError(
            f"RabbitMQ at {self._endpoint} is blocked ({frame.method.reason}); free memory or disk there, "
            "it goes on by itself"
        )
        for waiting in self._busy:
            waiting.fail(self.blocked)

    def _on_unblocked(self, _: Wire, frame: Method[ConnectionMethods.Unblocked]) -> None:
        self.blocked = None
