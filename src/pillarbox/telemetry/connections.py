"""Bounds for what strangers can do to a port: so many connections, so many seconds to ask for something.

What must stay true: whoever opens connections and says nothing costs nobody else an answer, and takes no descriptors
that the process needs for its database and its broker. When there are too many connections, the oldest that asks for
nothing is closed; only where every one is being answered is the newest refused. Who has not sent all of a request asks
for nothing yet.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

PATIENCE = 10.0
"""Seconds for the head of a request, from the opening of the connection or the last answer."""
BODY_PATIENCE = 30.0
"""Seconds for the rest of it, from then on."""
MOST = 64
"""Connections at once, at most."""
AT_ONCE = 32
"""Connections that are accepted before the event loop does something else. Where descriptors run out, asyncio logs one
error for each."""
_QUIET = 60.0
"""Seconds between two log lines about connections that cannot be accepted."""


def most_connections(wanted: int = MOST, *, share: int = 4) -> int:
    """How many connections a port may have: what is wanted, and never more than one in `share` of all descriptors."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft // share))


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 with these bounds; a class below it may want more connections, or a larger share of descriptors."""

    wanted = MOST
    share = 4

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._most = most_connections(self.wanted, share=self.share)
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Nothing was asked to its end, or what was asked is answered."""
        return self._between_requests or self.cycle.more_body

    @property
    def _between_requests(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.opened = time.monotonic()
        self._begin_to_wait()
        if len(self.connections) > self._most:
            idle = [one for one in self.connections if isinstance(one, BoundedProtocol) and one.idle]
            oldest = min(idle, key=lambda one: one.opened, default=self)
            oldest.refuse()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_longer()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._begin_to_wait()

    def refuse(self) -> None:
        """Close the connection at once; it counts no longer."""
        self.connections.discard(self)
        self._wait_no_longer()
        self.transport.abort()

    def _begin_to_wait(self) -> None:
        self._wait_no_longer()
        self._deadline = self.loop.call_later(PATIENCE, self._waited)

    def _wait_no_longer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _waited(self) -> None:
        if self._between_requests:
            self.refuse()
        elif self.idle:
            self._deadline = self.loop.call_later(BODY_PATIENCE, self._waited_for_body)

    def _waited_for_body(self) -> None:
        if self.idle:
            self.refuse()


class SeldomAboutDescriptors(logging.Filter):
    """Lets one line a minute pass about connections that cannot be accepted, and everything else."""

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


def quiet_about_descriptors() -> None:
    """Once for a process, however many ports it has."""
    log = logging.getLogger("asyncio")
    if not any(isinstance(one, SeldomAboutDescriptors) for one in log.filters):
        log.addFilter(SeldomAboutDescriptors())
