"""Runs the API. On shutdown it ends the live streams first, because they would keep the server waiting."""

from __future__ import annotations

import signal
import socket
import sys

import uvicorn
from fastapi import FastAPI

from apps.runtime.port import ApiProtocol
from pillarbox.telemetry.connections import ACCEPT_BATCH, limit_descriptor_logs

GRACE_PERIOD = 10
"""Seconds for requests in progress."""


class Server(uvicorn.Server):
    """Uvicorn waits for open connections before it stops the application; a live stream would never end."""

    def __init__(self, app: FastAPI, *, host: str, port: int, log_level: str = "info") -> None:
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                http=ApiProtocol,
                backlog=ACCEPT_BATCH,
                timeout_graceful_shutdown=GRACE_PERIOD,
                server_header=False,
                log_level=log_level,
            )
        )
        self._live = app.state.live

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._live.close()
        await super().shutdown(sockets)


def run(app: FastAPI, *, host: str, port: int) -> None:
    """Serve until SIGTERM or Ctrl-C; exit with 0 when uvicorn raises the signal again after its shutdown."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    limit_descriptor_logs()
    Server(app, host=host, port=port).run()
