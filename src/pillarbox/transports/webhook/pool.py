"""Requests over pooled connections: bounded per host and in all, each with its own timeout, none in a task of its own.

A request that waits for a connection has not begun, and cannot time out. A connection is used again for the same host
only, and closed if its response did not end, or if it was idle for `KEEP_ALIVE`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from pillarbox import failpoints
from pillarbox.transports.webhook.connection import BaseConnection, Dialer
from pillarbox.transports.webhook.http1 import InvalidResponseError, Response, ResponseParser
from pillarbox.transports.webhook.plugin import HttpEndpoint

KEEP_ALIVE = 4.0
"""Seconds that an idle connection is kept: less than most servers keep it, so that no request meets its end."""
DRAIN_SECONDS = 1.0
"""Seconds that a response may take after its headers; then its connection is closed."""


class DisconnectedError(Exception):
    """The receiver closed the connection before its response."""


class ConnectTimeoutError(TimeoutError):
    """There was no connection in time."""


class HttpRequest:
    """One request. `on_done` is called once, with the response or the error, unless the request is cancelled."""

    __slots__ = ("_data", "_host", "_on_done", "_stop", "_timer")

    def __init__(self, host: HttpHost, data: bytes, on_done: Callable[[Response | Exception], None]) -> None:
        self._host = host
        self._data = data
        self._on_done: Callable[[Response | Exception], None] | None = on_done
        self._stop: Callable[[], object] | None = None
        """Ends what the request is doing: connecting, or using a connection."""
        self._timer: asyncio.TimerHandle | None = None

    @property
    def done(self) -> bool:
        return self._on_done is None

    def cancel(self) -> None:
        """End it without a result; the receiver may have it."""
        self._end(None)

    def fail(self, error: Exception) -> None:
        """End it with this error."""
        self._end(error)

    def begin(self) -> None:
        """Begin to use a connection, or to connect."""
        self._timer = self._host.loop.call_later(self._host.pool.send_timeout, self._end, TimeoutError())
        if (connection := self._host.idle_connection()) is not None:
            self.send_over(connection)
        else:
            self._stop = self._host.loop.create_task(self._connect()).cancel

    def send_over(self, connection: HttpConnection) -> None:
        self._stop = connection.abort
        connection.send(self, self._data)

    def headers_arrived(self) -> None:
        """From now on the result is known, and only the rest of the response is waited for."""
        if self._timer is not None:
            self._timer.cancel()

    def finish(self, result: Response | Exception) -> None:
        """The request is over, and does not use its connection any more."""
        self._stop = None
        self._end(result)

    def _end(self, result: Response | Exception | None) -> None:
        on_done, self._on_done = self._on_done, None
        if on_done is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        if self._stop is not None:
            self._stop()
        if result is not None:
            on_done(result)
        self._host.ended(self)

    async def _connect(self) -> None:
        pool = self._host.pool
        try:
            try:
                async with asyncio.timeout(pool.connect_timeout):
                    connection = await pool.dialer.dial(self._host.endpoint, self._host.new_connection)
            except TimeoutError:
                raise ConnectTimeoutError from None
        except Exception as error:  # whatever it is, it is the result of this request
            self.finish(error)
            return
        if self.done:
            self._host.keep(connection)
        else:
            self.send_over(connection)


class HttpConnection(BaseConnection):
    """One connection, for one request at a time."""

    def __init__(self, host: HttpHost) -> None:
        self._host = host
        self._request: HttpRequest | None = None
        self._parser = ResponseParser()
        self._drain: asyncio.TimerHandle | None = None
        self.idle_since = 0.0
        self.closed = asyncio.Event()
        self._why_closed: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._host.connections.add(self)

    def send(self, request: HttpRequest, data: bytes) -> None:
        self._request, self._parser = request, ResponseParser()
        if self.closed.is_set():  # a receiver that accepts and closes at once: nothing would end this request in time
            self._finish(self._why_closed or DisconnectedError())
            return
        self.transport.write(data)
        if failpoints.armed:
            failpoints.hit("after-send")

    def data_received(self, data: bytes) -> None:
        if self._request is None:  # what was not asked for
            self.abort()
            return
        if failpoints.armed:
            failpoints.hit("before-confirm")
        parser = self._parser
        try:
            is_enough = parser.feed(data)
        except InvalidResponseError as error:
            self._finish(error)
            return
        if is_enough:
            self._finish(parser.response())
        elif parser.status and self._drain is None:
            self._request.headers_arrived()
            self._drain = self._host.loop.call_later(DRAIN_SECONDS, self._drained)

    def connection_lost(self, exc: Exception | None) -> None:
        self._host.connections.discard(self)
        self._why_closed = exc
        self.closed.set()
        if self in self._host.idle:
            self._host.idle.remove(self)
        if self._request is not None:
            self._finish(self._parser.response() if self._parser.status else exc or DisconnectedError())

    def _drained(self) -> None:
        if self._request is not None:
            self._finish(self._parser.response())

    def _finish(self, result: Response | Exception) -> None:
        request, self._request = self._request, None
        if self._drain is not None:
            self._drain.cancel()
            self._drain = None
        if self._parser.reusable:
            self._host.keep(self)
        else:
            self.abort()
        if request is not None:
            request.finish(result)


class HttpHost:
    """The connections to one host, and the requests that wait for one."""

    def __init__(self, endpoint: HttpEndpoint, pool: HttpPool) -> None:
        self.endpoint = endpoint
        self.pool = pool
        self.loop = asyncio.get_running_loop()
        self.connections: set[HttpConnection] = set()
        self.idle: list[HttpConnection] = []
        """The last one is used next."""
        self.waiting: deque[HttpRequest] = deque()
        self.running: set[HttpRequest] = set()

    def new_connection(self) -> HttpConnection:
        return HttpConnection(self)

    def idle_connection(self) -> HttpConnection | None:
        """An open connection for exclusive use."""
        while self.idle:
            connection = self.idle.pop()
            if not connection.transport.is_closing():
                return connection
        return None

    def keep(self, connection: HttpConnection) -> None:
        """Keep a connection for the next request."""
        connection.idle_since = self.loop.time()
        self.idle.append(connection)
        self.pool.close_idle_later(self.loop)

    def begin(self) -> None:
        """Begin what may begin now."""
        while self.waiting and len(self.running) < self.pool.per_host and self.pool.running < self.pool.total:
            request = self.waiting.popleft()
            if not request.done:
                self.running.add(request)
                self.pool.running += 1
                request.begin()

    def ended(self, request: HttpRequest) -> None:
        """A request is over: others may begin."""
        if request in self.running:
            self.running.remove(request)
            self.pool.running -= 1
            self.pool.begin(self)


class HttpPool:
    """The connections to all hosts."""

    def __init__(
        self, dialer: Dialer, *, per_host: int, total: int, connect_timeout: float, send_timeout: float
    ) -> None:
        self.dialer = dialer
        self.per_host = per_host
        self.total = total
        self.connect_timeout = connect_timeout
        self.send_timeout = send_timeout
        self.running = 0
        """Requests under way, to all hosts."""
        self._hosts: dict[tuple[str, str, int], HttpHost] = {}
        self._sweep: asyncio.TimerHandle | None = None

    def send(self, endpoint: HttpEndpoint, data: bytes, on_done: Callable[[Response | Exception], None]) -> HttpRequest:
        """Send a request as soon as there is a connection for it."""
        host = self._hosts.get(endpoint.origin)
        if host is None:
            host = self._hosts[endpoint.origin] = HttpHost(endpoint, self)
        request = HttpRequest(host, data, on_done)
        host.waiting.append(request)
        host.begin()
        return request

    def begin(self, first: HttpHost) -> None:
        """Begin what may begin now, to this host first."""
        first.begin()
        if self.running == self.total - 1:  # there was no connection left for any host
            for host in self._hosts.values():
                host.begin()

    async def aclose(self, error: Exception) -> None:
        """Fail every request with this error, and close every connection."""
        for host in self._hosts.values():
            for request in (*host.waiting, *host.running):
                request.fail(error)
        if self._sweep is not None:
            self._sweep.cancel()
        left = [connection for host in self._hosts.values() for connection in host.connections]
        for connection in left:
            connection.abort()
        for connection in left:
            await connection.closed.wait()

    def close_idle_later(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._sweep is None:
            self._sweep = loop.call_later(KEEP_ALIVE, self._close_idle, loop)

    def _close_idle(self, loop: asyncio.AbstractEventLoop) -> None:
        self._sweep, now = None, loop.time()
        for host in self._hosts.values():
            for connection in host.idle:
                if now - connection.idle_since >= KEEP_ALIVE:
                    connection.abort()
            host.idle = [one for one in host.idle if not one.transport.is_closing()]
            if host.idle:
                self.close_idle_later(loop)
