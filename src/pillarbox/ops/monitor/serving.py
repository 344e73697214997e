"""The port: open before the work begins, closed after it has ended, on the event loop of whoever works.

On the same loop on purpose: if that is wedged, nobody answers, and whoever asks for life knows.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pillarbox.core.errors import ConfigurationError

try:
    from uvicorn import Config, Server

    from pillarbox.telemetry.connections import ACCEPT_BATCH, BoundedProtocol, limit_descriptor_logs
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('metrics and health need more packages: pip install "pillarbox[metrics]"') from missing

if TYPE_CHECKING:
    from starlette.applications import Starlette

FAREWELL = 1
"""Seconds that those who are being answered have when the port is closed."""


def open_port(listen: str, *, called: str) -> socket.socket:
    """listen: host:port; port 0 takes any that is free. Raises ConfigurationError, which says what `called` asked for
    and why it cannot be had."""
    host, _, port = listen.rpartition(":")
    try:
        return socket.create_server((host.strip("[]"), int(port)), family=_family(host), backlog=128)
    except OSError as error:
        # What create_server adds to it is the address once more.
        reason = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror
        raise ConfigurationError(
            f"{called}: nothing can listen on {listen}: {reason}; name an address of this machine and a free port"
        ) from None


def address_of(port: socket.socket) -> str:
    """host:port as it is, for people."""
    host, number = port.getsockname()[:2]
    return f"[{host}]:{number}" if ":" in host else f"{host}:{number}"


@asynccontextmanager
async def served(pages: Starlette, port: socket.socket) -> AsyncIterator[None]:
    """Answer on `port` while the block is open; then close it."""
    limit_descriptor_logs()
    config = Config(
        pages,
        http=BoundedProtocol,
        backlog=ACCEPT_BATCH,
        lifespan="off",
        log_config=None,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=FAREWELL,
    )
    server = Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    # Not `serve()`: it would take the signals for itself, and they are the relay's.
    await server.startup(sockets=[port])
    ticking = asyncio.create_task(server.main_loop())
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.wait([ticking])
        await server.shutdown(sockets=[port])


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if host.startswith("[") else socket.AF_INET
