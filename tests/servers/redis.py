"""A private Redis: own folder, own port, everything on loopback."""

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import redis

from tests.servers import debian, processes
from tests.servers.ports import free_port, is_open
from tests.servers.server import Server
from tests.servers.waiting import wait_until

_SETTINGS = {
    "appendonly": "yes",
    # With everysec, Redis postpones a write while the disk is busy, and a kill loses what was accepted meanwhile.
    "appendfsync": "always",
    "save": '""',
    "maxmemory-policy": "noeviction",
    # The least that Redis accepts: a test sends more than this.
    "proto-max-bulk-len": "1mb",
    # A replica need not wait for others.
    "repl-diskless-sync-delay": "0",
}


class RedisServer(Server):
    """One server. `stop` and `kill` keep the entries, `start` brings them back, `close` removes them.

    `settings` are lines of its configuration file.
    """

    def __init__(self, *, settings: Mapping[str, str] | None = None) -> None:
        self.settings = _SETTINGS | dict(settings or {})
        """Read at every start."""
        self._binary = debian.REDIS_SERVER.path()
        self._started: processes.Started | None = None
        self.port = free_port()
        self.folder = processes.make_folder("redis", in_memory=True)

    @property
    def pid(self) -> int:
        return self._running().pid

    def url(self, database: int = 0) -> str:
        return f"redis://127.0.0.1:{self.port}/{database}"

    def client(self, **options: Any) -> "redis.Redis":
        """A client of the tests' own: it reads what the transport wrote."""
        return redis.Redis(host="127.0.0.1", port=self.port, **options)

    def start(self) -> None:
        """Returns when the server has loaded its data and takes commands."""
        self.spawn()
        wait_until(self._ready, bound=60, what=f"Redis on port {self.port} takes commands")

    def spawn(self) -> None:
        """Returns when the server takes connections; it may still load its data."""
        configuration = self.folder / "redis.conf"
        lines = {"bind": "127.0.0.1", "port": str(self.port), "dir": str(self.folder), "daemonize": "no"}
        configuration.write_text("".join(f"{name} {value}\n" for name, value in (lines | self.settings).items()))
        processes.hand_over(configuration)
        self._started = started = processes.spawn(
            [self._binary, str(configuration)],
            name="Redis",
            folder=self.folder,
            log=self.folder / "redis.log",
            ports=(self.port,),
        )
        wait_until(
            lambda: started.must_run() and is_open(self.port),
            bound=60,
            what=f"Redis on port {self.port} takes connections",
        )

    def stop(self) -> None:
        """Ends the server in order."""
        started = self._running()
        started.terminate()
        self._wait_gone(started)

    def kill(self) -> None:
        """Ends the server with SIGKILL."""
        started = self._running()
        started.kill()
        self._wait_gone(started)

    def freeze(self) -> None:
        """Stop the process without closing anything, until `thaw`."""
        self._running().signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._running().signal(signal.SIGCONT)

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Kills the server if it runs, and removes the folder."""
        if self._started is not None:
            self.kill()
        processes.remove_folder(self.folder)

    def _ready(self) -> bool:
        with self.client() as client:
            try:
                return self._running().must_run() and bool(client.ping())
            except redis.exceptions.AuthenticationError:
                return True
            except (redis.exceptions.ConnectionError, redis.exceptions.BusyLoadingError):
                return False

    def _running(self) -> processes.Started:
        if self._started is None:
            raise processes.ServerFailed("this Redis is not running")
        return self._started

    def _wait_gone(self, started: processes.Started) -> None:
        started.wait_gone(bound=60)
        processes.forget(started)
        self._started = None


def certificate_settings(port: int, folder: Path) -> dict[str, str]:
    """The settings of a server with a second port for TLS, without certificates of clients."""
    return {
        "tls-port": str(port),
        "tls-cert-file": str(folder / "broker.pem"),
        "tls-key-file": str(folder / "broker.key"),
        "tls-ca-cert-file": str(folder / "authority.pem"),
        "tls-auth-clients": "no",
    }
