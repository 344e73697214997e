"""The HTTP port of a process: opened before the work starts, closed after it has ended.

It runs on the event loop of the relay or consumer on purpose: if that loop hangs, the liveness probe fails.
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

SHUTDOWN_TIMEOUT = 1
"""Seconds for open requests to finish when the port is closed."""


def open_port(listen: str, *, called: str) -> socket.socket:
    """Open a port for listening. Raises ConfigurationError if that fails.

    listen: host:port; port 0 takes any free port. called: the setting or option, for the error.
    """
    host, _, port = listen.rpartition(":")
    try:
        return socket.create_server((host.strip("[]"), int(port)), family=_family(host), backlog=128)
    except OSError as error:
        # create_server repeats the address in its message.
        reason = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror
        raise ConfigurationError(
            f"{called}: cannot listen on {listen}: {reason}; use an address of this machine and a free port"
        ) from None
    except (ValueError, OverflowError):
        raise ConfigurationError(f"{called}: {listen!r} is not HOST:PORT; write for example 127.0.0.1:9463") from None


def address_of(port: socket.socket) -> str:
    """Return host:port for display."""
    host, number = port.getsockname()[:2]
    return f"[{host}]:{number}" if ":" in host else f"{host}:{number}"


@asynccontextmanager
async def served(pages: Starlette, port: socket.socket) -> AsyncIterator[None]:
    """Serve on `port` while the block is open, then close it."""
    limit_descriptor_logs()
    config = Config(
        pages,
        http=BoundedProtocol,
        backlog=ACCEPT_BATCH,
        lifespan="off",
        log_config=None,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
    )
    server = Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    # Not `serve()`: it would install signal handlers, which belong to the relay.
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
