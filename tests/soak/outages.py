"""Outages of private servers for the hooks of a drill, which are shell commands.

A command sends one line over a Unix socket; a thread of the soak, which owns the servers, kills, freezes or restarts
one of them and replies when it is done.
"""

from __future__ import annotations

import os
import random
import shlex
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from typing import Literal, Protocol

_ASK = (
    "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode()); "
    "sys.exit(s.recv(100) != b'done')"
)


Way = Literal["kill", "stop", "freeze"]

TIME_TO_DECLARE = 60.0
"""Seconds in which a server is not killed: a RabbitMQ node that is killed moments after it declared a quorum queue may
lose the queue."""


class OutageServer(Protocol):
    """A private server, as `tests/servers` starts it."""

    @property
    def pid(self) -> int: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...


class Outages(Protocol):
    """Cuts something off, and restores it."""

    def cut(self) -> None: ...
    def restore(self) -> None: ...


class ServerOutages:
    """Cuts off one server in a random way, and restores it."""

    def __init__(self, server: OutageServer, rng: random.Random, *ways: Way) -> None:
        self._server = server
        self._rng = rng
        self._ways = ways
        self._declared = time.monotonic() + TIME_TO_DECLARE
        self._restore: Callable[[], None] = server.start
        self.used: list[Way] = []

    def cut(self) -> None:
        """Kill, stop or freeze the server."""
        way = self._rng.choice(self._ways)
        if way == "kill" and time.monotonic() < self._declared:
            way = self._ways[-1]
        self.used.append(way)
        if way == "freeze":
            os.kill(self._server.pid, signal.SIGSTOP)
            self._restore = lambda: os.kill(self._server.pid, signal.SIGCONT)
        else:
            self._server.kill() if way == "kill" else self._server.stop()
            self._restore = self._server.start

    def restore(self) -> None:
        """Undo the last cut, and return when the server accepts connections."""
        self._restore()


class HookSocket:
    """Executes what the commands ask for: `database cut`, `broker restore`."""

    def __init__(self, folder: Path, servers: Mapping[str, Outages]) -> None:
        self._path = folder / "hooks"
        self._servers = servers
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self._path))
        self._socket.listen()
        Thread(target=self._serve, name="hooks", daemon=True).start()

    def command(self, server: str, action: str) -> str:
        """Return the shell command for an action; "" for a server that is never cut off."""
        if server not in self._servers:
            return ""
        return shlex.join([sys.executable, "-I", "-c", _ASK, str(self._path), f"{server} {action}"])

    def close(self) -> None:
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                server, action = connection.recv(100).decode().split()
                try:
                    getattr(self._servers[server], action)()
                except Exception as error:
                    print(f"{server} {action}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                    connection.sendall(b"failed")
                else:
                    connection.sendall(b"done")
