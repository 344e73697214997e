"""The API as a process. When it is told to stop, live streams are ended first: nobody waits for a client to go."""

from __future__ import annotations

import signal
import socket
import sys

import uvicorn
from fastapi import FastAPI

from apps.common.port import ApiProtocol
from pillarbox.telemetry.connections import ACCEPT_BATCH, limit_descriptor_logs

GRACE = 10
"""Seconds for requests that are being answered."""


class Server(uvicorn.Server):
    """Uvicorn waits for open connections before it tells the application to stop: a live stream would never end."""

    def __init__(self, app: FastAPI, *, host: str, port: int, log_level: str = "info") -> None:
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                http=ApiProtocol,
                backlog=ACCEPT_BATCH,
                timeout_graceful_shutdown=GRACE,
                server_header=False,
                log_level=log_level,
            )
        )
        self._live = app.state.live

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._live.close()
        await super().shutdown(sockets)


def run(app: FastAPI, *, host: str, port: int) -> None:
    """Serve until SIGTERM or Ctrl-C, which is a good end: uvicorn raises them once more when it has stopped."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    limit_descriptor_logs()
    Server(app, host=host, port=port).run()
