"""Limits of an HTTP port: the number of connections and the time to send a request.

Invariants: idle connections neither delay the answers to other clients nor use up file descriptors that the process
needs for its database and its broker. If there are too many connections, the server closes the oldest idle one; if
every connection is being answered, it refuses the newest. A connection with an incomplete request counts as idle.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import time
from typing import Any, cast

try:
    from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
except ImportError as missing:
    raise ImportError('an HTTP port needs uvicorn: pip install "pillarbox[http]"') from missing

HEAD_TIMEOUT = 10.0
"""Seconds for the request line and headers, from the opening of the connection or the previous response."""
BODY_TIMEOUT = 30.0
"""Seconds for the body of a request, after `HEAD_TIMEOUT`."""
MAX_CONNECTIONS = 64
"""Maximum number of open connections."""
ACCEPT_BATCH = 32
"""Connections accepted per iteration of the event loop. If descriptors run out, asyncio logs one error for each."""
_QUIET = 60.0
"""Minimum seconds between two log lines about connections that cannot be accepted."""


def max_connections(wanted: int = MAX_CONNECTIONS, *, share: int = 4) -> int:
    """Return the connection limit of a port: `wanted`, but at most one in `share` of all file descriptors."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft // share))


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 with these limits; a subclass may allow more connections or a larger share of descriptors."""

    wanted = MAX_CONNECTIONS
    share = 4

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._max = max_connections(self.wanted, share=self.share)
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether no complete request waits for its response."""
        return self._between_requests or self.cycle.more_body

    @property
    def _between_requests(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        return cycle is None or cycle.response_complete

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self.opened = time.monotonic()
        self._start_timeout()
        if len(self.connections) > self._max:
            others = cast("set[object]", self.connections)
            idle = [one for one in others if isinstance(one, BoundedProtocol) and one.idle]
            oldest = min(idle, key=lambda one: one.opened, default=self)
            oldest.refuse()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timeout()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._start_timeout()

    def refuse(self) -> None:
        """Close the connection immediately and stop counting it."""
        self.connections.discard(self)
        self._cancel_timeout()
        self.transport.abort()

    def _start_timeout(self) -> None:
        self._cancel_timeout()
        self._deadline = self.loop.call_later(HEAD_TIMEOUT, self._head_timed_out)

    def _cancel_timeout(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _head_timed_out(self) -> None:
        if self._between_requests:
            self.refuse()
        elif self.idle:
            self._deadline = self.loop.call_later(BODY_TIMEOUT, self._body_timed_out)

    def _body_timed_out(self) -> None:
        if self.idle:
            self.refuse()


class DescriptorLogLimit(logging.Filter):
    """Passes at most one line per minute about connections that cannot be accepted, and every other line."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if "socket.accept() out of system resource" not in record.getMessage():
            return True
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + _QUIET
        return True


def limit_descriptor_logs() -> None:
    """Install the filter once per process."""
    log = logging.getLogger("asyncio")
    if not any(isinstance(one, DescriptorLogLimit) for one in log.filters):
        log.addFilter(DescriptorLogLimit())
