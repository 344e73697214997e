"""Connections to NATS: one connection from opening to end, and the connector that replaces lost ones.

A connection is never repaired. `lost` says why nothing can be sent over it; its loss fails everything unconfirmed at
once, and nothing reconnects in the background.

All replies arrive at one inbox. The first word after its name says to whom: a request, or a batch of messages.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable
from random import sample
from typing import Any, Protocol, TypeVar

from pillarbox.core.clock import Duration
from pillarbox.core.errors import UnavailableError
from pillarbox.transports.nats.driver import (
    MessageHandler,
    NatsError,
    NatsWire,
    check_driver,
    publish_command,
    reason_of,
)
from pillarbox.transports.nats.headers import ApiError, status_of
from pillarbox.transports.nats.plugin import NatsEndpoint, positive
from pillarbox.transports.nats.topology import StreamCatalog

T = TypeVar("T")
ReplyHandler = Callable[[bytes, bytes, bytes | None], None]
"""Receives the rest of the reply's subject, the payload and the block of headers."""

NO_RESPONDERS = 503
UNAVAILABLE_FROM = 500
"""Codes from which the server is at fault."""
_API = "$JS.API"


class ConnectionListener(Protocol):
    """Something that waits for replies over a connection."""

    def on_lost(self, reason: UnavailableError) -> None:
        """The connection is lost."""
        ...

    def on_refused(self, text: str) -> None:
        """The server refused a command and keeps the connection."""
        ...


class NatsConnection:
    """One connection to one of the servers. Opened once, closed once."""

    def __init__(self, endpoint: NatsEndpoint, *, reply_timeout: float) -> None:
        self._endpoint = endpoint
        self._reply_timeout = reply_timeout
        self._wire: NatsWire | None = None
        self._opening: asyncio.Timeout | None = None
        self._inbox = f"_INBOX.{secrets.token_hex(12)}"
        self._prefix = len(self._inbox) + 1
        self._handlers: dict[bytes, ReplyHandler] = {}
        self._tokens = 0
        self._waiting: dict[asyncio.Future[Any], str] = {}
        self.listeners: set[ConnectionListener] = set()
        self.server = ""
        self.replies = 0
        """How many arrived."""
        self.lost: UnavailableError | None = None
        self.unresponsive = False
        """Whether a reply did not arrive in time: ask for another one before the next use."""
        self.failing_since: float | None = None
        """When JetStream first failed after it last did what it was asked for."""
        self.declared = False
        """Whether everything was declared, and no stream is known to be missing since."""
        self.streams = StreamCatalog(self, str(endpoint))

    def failed(self) -> None:
        """Note that JetStream does not answer, or not now, as on a server that is cut off from its cluster."""
        self.failing_since = self.failing_since or asyncio.get_running_loop().time()

    def check(self) -> None:
        """Raise UnavailableError if the connection is lost."""
        if self.lost is not None:
            raise self.lost

    @property
    def wire(self) -> NatsWire:
        """Raises UnavailableError."""
        self.check()
        if self._wire is None:
            raise UnavailableError(f"the connection to NATS at {self._endpoint} is not open yet")
        return self._wire

    @property
    def progress(self) -> tuple[int, int]:
        """Replies received, and bytes that have not left yet."""
        return self.replies, 0 if self._wire is None else self._wire.unsent

    @property
    def max_payload(self) -> int:
        """Bytes of the largest message with its headers."""
        return int(self.wire.info.get("max_payload", 1_048_576))

    async def open(self, limit: float) -> None:
        """Connect to the first server that accepts, in random order. Raises UnavailableError."""
        servers = self._endpoint.servers
        failures: list[str] = []
        for number, server in enumerate(sample(servers, len(servers))):
            name = self._endpoint.url_of(server).partition("://")[2]
            try:
                # The servers that are left share the time that is left.
                async with asyncio.timeout(limit / (len(servers) - number)) as self._opening:
                    return await self._open(self._endpoint.url_of(server), limit)
            except TimeoutError:
                self.check()
                failures.append(f"{name}: no answer in time")
            except (NatsError, OSError, ValueError) as error:
                failures.append(f"{name}: {reason_of(error)}")
            finally:
                self._opening = None
        raise UnavailableError(f"cannot connect to NATS at {'; '.join(failures)}")

    async def _open(self, url: str, limit: float) -> None:
        endpoint = self._endpoint
        wire = NatsWire(ended=self._on_end, refused=self._on_refused, secure=endpoint.secure)
        try:
            await wire.open(
                url,
                limit=limit,
                user=endpoint.user,
                password=endpoint.password,
                token=endpoint.token,
                tls=endpoint.tls,
            )
        except BaseException:
            wire.cut()
            raise
        if self.lost is not None:  # closed meanwhile; nats-py may have swallowed the cancellation
            wire.cut()
            raise self.lost
        if not wire.info.get("headers"):
            wire.cut()
            raise NatsError("the server supports no headers; use NATS 2.9 or newer")
        self._wire, self.server = wire, url.partition("://")[2]
        wire.receive(f"{self._inbox}.>", self._on_reply)

    def receive(self, subject: str, handler: MessageHandler) -> int:
        """Subscribe; returns the number of the subscription. Raises UnavailableError."""
        return self.wire.receive(subject, handler)

    def ignore(self, number: int) -> None:
        """End a subscription."""
        if self.lost is None:
            self.wire.ignore(number)

    def new_inbox(self) -> str:
        """A subject of its own, for another subscription."""
        return f"_INBOX.{secrets.token_hex(12)}"

    def add_handler(self, handler: ReplyHandler) -> str:
        """Receive replies; returns the subject for them, to which words may be added. `remove_handler` ends it."""
        self._tokens += 1
        token = f"{self._tokens:x}"
        self._handlers[token.encode()] = handler
        return f"{self._inbox}.{token}"

    def remove_handler(self, subject: str) -> None:
        """Ignore further replies."""
        self._handlers.pop(subject[self._prefix :].encode(), None)

    async def ask(self, subject: str, payload: bytes = b"", headers: bytes | None = None) -> tuple[int, bytes]:
        """Send a message and wait for the reply: status of the server (0: none) and payload. Raises UnavailableError,
        also if no reply arrives in time."""
        answered: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()

        def on_reply(_: bytes, data: bytes, block: bytes | None) -> None:
            if not answered.done():
                answered.set_result((status_of(block) if not data else 0, data))

        reply = self.add_handler(on_reply)
        try:
            self.wire.write(publish_command(subject, reply, payload, headers))
            return await self._wait(answered, subject)
        finally:
            self.remove_handler(reply)

    async def request(self, verb: str, payload: dict[str, Any] | None = None) -> dict[str, Any]:
        """A request to JetStream. Raises ApiError if JetStream refuses it, UnavailableError otherwise."""
        status, data = await self.ask(f"{_API}.{verb}", b"" if payload is None else json.dumps(payload).encode())
        if status == NO_RESPONDERS:
            self.failed()
            raise UnavailableError(
                f"NATS at {self.server} has no JetStream now: enable it (nats-server -js), or wait for a leader"
            )
        try:
            answer: dict[str, Any] = json.loads(data)
        except ValueError:
            raise UnavailableError(f"NATS at {self.server} answered {verb} with something that is not JSON") from None
        if error := answer.get("error"):
            if int(error.get("code") or 0) >= UNAVAILABLE_FROM:
                self.failed()
            raise ApiError(error)
        self.failing_since = None
        return answer

    async def round_trip(self) -> None:
        """Wait for a reply of the server. Raises UnavailableError."""
        ponged: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.wire.ping(ponged)
        await self._wait(ponged)
        self.unresponsive = False

    def abort(self, reason: UnavailableError) -> None:
        """Cut the connection at once; everything unconfirmed fails for this reason."""
        if self.lost is None:
            self._fail(reason)
            if self._wire is not None:
                self._wire.cut()

    async def aclose(self, reason: UnavailableError) -> None:
        """Send what was written and close the connection."""
        if self.lost is None:
            self._fail(reason)
            if self._wire is not None:
                await self._wire.finish()

    async def _wait(self, answered: asyncio.Future[T], subject: str = "") -> T:
        self._waiting[answered] = subject.lower()
        try:
            async with asyncio.timeout(self._reply_timeout):
                return await answered
        except TimeoutError:
            self.unresponsive = True
            self.failed()
            raise UnavailableError(f"NATS at {self.server} did not answer within {self._reply_timeout:g} s") from None
        finally:
            del self._waiting[answered]

    def _fail(self, reason: UnavailableError) -> None:
        self.lost = reason
        for answered in self._waiting:
            if not answered.done():
                answered.set_exception(reason)
        for listener in list(self.listeners):
            listener.on_lost(reason)
        if self._opening is not None and not self._opening.expired():
            self._opening.reschedule(asyncio.get_running_loop().time())

    def _on_reply(self, subject: bytes, _: bytes, data: bytes, headers: bytes | None) -> None:
        self.replies += 1
        token, _dot, rest = subject[self._prefix :].partition(b".")
        if (handler := self._handlers.get(token)) is not None:
            handler(rest, data, headers)

    def _on_refused(self, text: str) -> None:
        """The text has the subject that the server refuses, in lower case."""
        reason = f"NATS at {self.server} refuses: {text}; grant the permission"
        if "for subscription to" in text:  # no reply and no message would ever arrive
            self.abort(UnavailableError(f"{reason} to subscribe to _INBOX.>"))
            return
        for answered, subject in self._waiting.items():
            if f'"{subject}"' in text and not answered.done():
                answered.set_exception(UnavailableError(f"{reason}, or set declare = false"))
        for listener in list(self.listeners):
            listener.on_refused(text)

    def _on_end(self, reason: str) -> None:
        self.abort(UnavailableError(f"lost the connection to NATS at {self.server or self._endpoint}: {reason}"))


class NatsConnector:
    """One connection at a time, opened on demand; `what` it belongs to is named in the error once it is closed."""

    def __init__(
        self, endpoint: NatsEndpoint, *, connect_timeout: Duration, reply_timeout: Duration, what: str
    ) -> None:
        """Raises ConfigurationError for a timeout that is not positive."""
        check_driver()
        self._endpoint = endpoint
        self._connect_timeout = positive("connect_timeout", connect_timeout)
        self._reply_timeout = positive("reply_timeout", reply_timeout)
        self._what = what
        self.connection: NatsConnection | None = None
        """The connection in use."""
        self._opening = asyncio.Lock()
        self._closed = False

    async def ready(self, prepare: Callable[[NatsConnection], Awaitable[None]] | None = None) -> NatsConnection:
        """The connection; `prepare` is called unless it is `declared`. Raises UnavailableError, ConfigurationError."""
        connection = self.connection
        usable = connection is not None and connection.lost is None and not connection.unresponsive
        if connection is not None and self._leaves(connection):
            connection.abort(UnavailableError(f"NATS at {connection.server} has no JetStream; trying another server"))
        elif connection is not None and usable and (connection.declared or prepare is None):
            return connection
        async with self._opening:
            connection = await self._connected()
            if prepare is not None and not connection.declared:
                await prepare(connection)
                connection.declared = True
            return connection

    @property
    def progress(self) -> object:
        """A value that changes whenever bytes leave or a reply arrives."""
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
        async with self._opening:
            return  # nothing is being opened any more

    async def _connected(self) -> NatsConnection:
        self.check_open()
        connection = self.connection
        if connection is not None and connection.lost is None and connection.unresponsive:
            try:
                await connection.round_trip()
            except UnavailableError as error:
                connection.abort(error)
        if connection is None or connection.lost is not None:
            connection = self.connection = NatsConnection(self._endpoint, reply_timeout=self._reply_timeout)
            try:
                await connection.open(self._connect_timeout)
            except UnavailableError as error:
                connection.abort(error)
            except asyncio.CancelledError:
                connection.abort(UnavailableError("connecting was cancelled"))
                raise
        connection.check()
        return connection

    def _leaves(self, connection: NatsConnection) -> bool:
        """Whether to try another server of the cluster."""
        since, now = connection.failing_since, asyncio.get_running_loop().time()
        return len(self._endpoint.servers) > 1 and since is not None and now - since >= self._reply_timeout

    def _closed_error(self) -> UnavailableError:
        return UnavailableError(f"the {self._what} to NATS at {self._endpoint} is closed")
