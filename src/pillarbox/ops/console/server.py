"""Serves the console on its own port until it is stopped."""

from __future__ import annotations

import socket

from pillarbox.ops.console.app import Console
from pillarbox.ops.monitor.http_server import SHUTDOWN_TIMEOUT

try:
    from uvicorn import Config, Server

    from pillarbox.telemetry.connections import ACCEPT_BATCH, BoundedProtocol, limit_descriptor_logs
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('the console needs more packages: pip install "pillarbox[console]"') from missing


class BrowserProtocol(BoundedProtocol):
    """Limits connections: a browser opens six, and keeps one for live updates."""

    wanted = 256


class ConsoleServer:
    """Serves a console; `stop` may be called from a signal handler of the running loop."""

    def __init__(self, console: Console, *, root_path: str = "") -> None:
        self._console = console
        limit_descriptor_logs()
        self._config = Config(
            console,
            http=BrowserProtocol,
            backlog=ACCEPT_BATCH,
            lifespan="off",
            log_config=None,
            access_log=False,
            log_level="warning",
            root_path=root_path,
            # A login by proxy depends on the real address of the peer.
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
        )
        self._server = Server(self._config)

    async def run(self, port: socket.socket) -> None:
        """Serve until `stop`; then close the port."""
        self._config.load()
        self._server.lifespan = self._config.lifespan_class(self._config)
        # Not `serve()`, which installs its own signal handlers.
        await self._server.startup(sockets=[port])
        try:
            await self._server.main_loop()
        finally:
            self._console.stop()
            await self._server.shutdown(sockets=[port])

    def stop(self) -> None:
        self._console.stop()
        self._server.should_exit = True
