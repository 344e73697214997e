"""/metrics and /health of a process that serves nothing else: a consumer, a relay.

The port is served on the event loop of the consumer or relay: if the loop hangs, the health check fails.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from apps.runtime.metrics import metrics_page
from pillarbox.telemetry.connections import ACCEPT_BATCH, BoundedProtocol, limit_descriptor_logs

log = logging.getLogger(__name__)

OFF = ("0", "off")
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+):(\d{1,5})")

Health = Callable[[], Awaitable[tuple[bool, Mapping[str, object]]]]
"""Whether the process is UP, and further details."""


class ApiProtocol(BoundedProtocol):
    """For an API: clients keep connections open, and each client of a live stream has one."""

    wanted = 1024
    share = 2


class PortError(Exception):
    """The address cannot be used; the text names the variable."""


def read_address(variable: str, default: str) -> tuple[str, bool]:
    """Return the address, '' for none, and whether the variable set it. Raises PortError."""
    given = os.environ.get(variable, "").strip()
    if not given:
        return default, False
    if given.lower() in OFF:
        return "", True
    written = _ADDRESS.fullmatch(given)
    if written is None or not 0 < int(written[2]) < 65_536:
        raise PortError(f"{variable} is {given!r}: write host:port, for example {default}, or off")
    return given, True


def open_port(variable: str, default: str) -> socket.socket | None:
    """Open the port for metrics and health; None if the variable is `off`, or if it is not set and the default
    port is in use (several processes on one machine; a warning says so). Raises PortError."""
    address, chosen = read_address(variable, default)
    if not address:
        return None
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), int(port)), family=family, backlog=64)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        if chosen:
            raise PortError(f"{variable}: cannot listen on {address}: {reason}; choose a free port, or off") from None
        log.warning(
            "No metrics and no health: cannot listen on %s: %s; set %s to a free port", address, reason, variable
        )
        return None


@asynccontextmanager
async def serving(
    port: socket.socket | None,
    registry: CollectorRegistry,
    health: Health,
    *,
    before: Callable[[], Awaitable[None]] | None = None,
) -> AsyncIterator[None]:
    """Serve the port while the block runs, then close it. Without a port, do nothing.

    before: updates the metrics that are read only when the page is requested.
    """
    if port is None:
        yield
        return

    async def show_health(_: Request) -> Response:
        up, facts = await health()
        return JSONResponse({"status": "UP" if up else "DOWN", **facts}, 200 if up else 503)

    async def show_liveness(_: Request) -> Response:
        return JSONResponse({"status": "UP"})

    pages = Starlette(
        routes=[
            Route("/metrics", metrics_page(registry, before)),
            Route("/health", show_health),
            Route("/health/live", show_liveness),
        ]
    )
    host, number = port.getsockname()[:2]
    log.info("Metrics and health on http://%s:%s", f"[{host}]" if ":" in host else host, number)
    async with serving_app(port, pages):
        yield


@asynccontextmanager
async def serving_app(port: socket.socket, app: Starlette) -> AsyncIterator[None]:
    """Serve an application on the port while the block runs, then close it."""
    limit_descriptor_logs()
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        log_level="warning",
        http=BoundedProtocol,
        backlog=ACCEPT_BATCH,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[port]))
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.wait([task])


class _Server(uvicorn.Server):
    """A server that leaves signal handling to its process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
