"""A receiver of webhooks on loopback: keeps every request, and answers as a test tells it to."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import NamedTuple, Self

from aiohttp import web

from pillarbox.transports.webhook.headers import decoded

MAX_HEADER = 64 * 1024
"""Bytes of one header: the conformance suite sends one of 8 KiB, percent-encoded."""
MAX_BODY = 8 * 1024 * 1024


class Received(NamedTuple):
    """One request."""

    path: str
    headers: Mapping[str, str]
    """As they were on the wire, in their case."""
    body: bytes

    @property
    def event_id(self) -> str:
        return decoded(self.header("webhook-id"))

    def header(self, name: str) -> str:
        """Raises KeyError if the request does not have it."""
        return {key.lower(): value for key, value in self.headers.items()}[name.lower()]


Answer = Callable[[Received], web.Response | Awaitable[web.StreamResponse]]


def accepted(_: Received) -> web.Response:
    """The answer unless a test says otherwise."""
    return web.Response(status=204)


class Receiver:
    """Listens on its own port. `answer` decides on the response; a request counts as received before that."""

    def __init__(self, *, tls: ssl.SSLContext | None = None, listening: socket.socket | None = None) -> None:
        """`listening`: the socket to listen on, instead of one on loopback."""
        self.requests: list[Received] = []
        self.answer: Answer = accepted
        self.most_at_once = 0
        """The most requests that were under way at once."""
        self.port = 0
        self._tls = tls
        self._given = listening
        self._now = 0
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> Self:
        server = web.Server(self._handle, max_line_size=MAX_HEADER, max_field_size=MAX_HEADER, max_headers=500)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        self._listening = self._given or socket.create_server(("127.0.0.1", self.port))
        self.port = self._listening.getsockname()[1]
        await web.SockSite(self._runner, self._listening, ssl_context=self._tls).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the port and cut every connection; `__aenter__` opens the same port again."""
        if self._runner is None or self._runner.server is None:
            return
        # asyncio forgets a connection that it accepts while its server closes: first accept no more, then close.
        asyncio.get_running_loop().remove_reader(self._listening.fileno())
        for _ in range(5):
            await asyncio.sleep(0)
        for connection in self._runner.server.connections:
            if connection.transport is not None:
                connection.transport.abort()
        await self._runner.cleanup()
        self._runner = None

    def url(self, path: str = "") -> str:
        return f"{'https' if self._tls else 'http'}://localhost:{self.port}{path}"

    def peers(self) -> set[int]:
        """The ports of the clients that are connected now."""
        connections = [] if self._runner is None or self._runner.server is None else self._runner.server.connections
        return {one.transport.get_extra_info("peername")[1] for one in connections if one.transport is not None}

    def ids(self, path: str | None = None) -> list[str]:
        return [one.event_id for one in self.requests if path in (None, one.path)]

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        request._client_max_size = MAX_BODY
        try:
            raw = {name.decode(): value.decode() for name, value in request.raw_headers}
            received = Received(request.rel_url.raw_path_qs, raw, await request.read())
            self.requests.append(received)
            answer = self.answer(received)
            return answer if isinstance(answer, web.Response) else await answer
        finally:
            self._now -= 1
