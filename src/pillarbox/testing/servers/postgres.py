"""A private PostgreSQL: one folder, one loopback port, trust authentication, removed completely."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pillarbox.testing.servers import binaries, processes
from pillarbox.testing.servers.ports import free_port
from pillarbox.testing.servers.server import Server
from pillarbox.testing.servers.waiting import wait_until

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "100",
    "logging_collector": "off",
    # Segments in /dev/shm would outlive a killed server; files in its folder do not.
    "dynamic_shared_memory_type": "mmap",
}
# Tests do not need durability against power loss; a killed process loses nothing without it.
_NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}

_STOP_SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}


class PostgresServer(Server):
    """One cluster. `stop` and `kill` keep the data, `start` brings it back, `close` removes it."""

    host = "127.0.0.1"
    """Where clients connect."""
    namespace = ""
    """The network namespace in which it runs; empty: that of the tests."""

    def __init__(self, *, durable: bool = True, settings: Mapping[str, str] | None = None) -> None:
        self._binary = binaries.POSTGRES.path()
        self._initdb = binaries.INITDB.path()
        self._settings = _SETTINGS | ({} if durable else _NOT_DURABLE) | dict(settings or {})
        self._started: processes.Started | None = None
        self._killed = False
        self.port = free_port()
        # A database is cloned in 7 ms in memory, in 10 to 250 ms on a disk.
        self.folder = processes.make_folder("postgres", in_memory=not durable)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def pid(self) -> int:
        return self._running().pid

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@{self.host}:{self.port}/{database}"

    def start(self) -> None:
        """Returns when the server takes connections; makes the cluster the first time."""
        if not self.data.exists():
            self._make_cluster()
        settings = self._settings | {"port": str(self.port), "unix_socket_directories": str(self.folder)}
        options = [option for name, value in settings.items() for option in ("-c", f"{name}={value}")]
        self._started = processes.spawn(
            [self._binary, "-D", str(self.data), *options],
            name="PostgreSQL",
            folder=self.folder,
            log=self.folder / "postgres.log",
            ports=() if self.namespace else (self.port,),
            namespace=self.namespace,
        )
        self._killed = False
        wait_until(self._ready, bound=90, what=f"PostgreSQL on port {self.port} takes connections")

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Ends it: `fast` in order, `immediate` as after a crash of the database."""
        started = self._running()
        started.signal(_STOP_SIGNALS[mode])
        self._wait_gone(started)

    def kill(self) -> None:
        """Ends every process of the server with SIGKILL."""
        started = self._running()
        started.kill()
        self._killed = True
        self._wait_gone(started)

    def restart(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stops the server if it runs and removes its folder."""
        if self._started is not None:
            self.stop("immediate")
        if self._killed:
            self._remove_shared_memory()
        processes.remove_folder(self.folder)

    def create_database(self, name: str, template: str | None = None) -> None:
        """Create an empty database, or a copy of one without connections."""
        self._administer(binaries.CREATEDB, f"--template={template or 'template0'}", name)

    def drop_database(self, name: str) -> None:
        """Drop a database, and close its connections."""
        self._administer(binaries.DROPDB, "--if-exists", "--force", name)

    def _make_cluster(self) -> None:
        processes.run(
            [
                self._initdb,
                *("-D", str(self.data), "--username=postgres", "--auth=trust"),
                *("--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"),
            ],
            folder=self.folder,
        )

    def _ready(self) -> bool:
        """What pg_ctl asks: the last line of the pid file, unless the file is left from an older start."""
        started = self._running()
        started.must_run()
        lines = self._pid_file()
        return len(lines) >= 8 and int(lines[0]) == started.pid and lines[7].strip() == "ready"

    def _pid_file(self) -> list[str]:
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _running(self) -> processes.Started:
        if self._started is None:
            raise processes.ServerFailed("this PostgreSQL is not running")
        return self._started

    def _wait_gone(self, started: processes.Started) -> None:
        started.wait_gone(bound=90)
        processes.forget(started)
        self._started = None

    def _administer(self, program: binaries.Binary, *arguments: str) -> None:
        address = (f"--host={self.host}", f"--port={self.port}", "--username=postgres")
        processes.run([program.path(), *address, *arguments], folder=self.folder)

    def _remove_shared_memory(self) -> None:
        """A killed server leaves a System V segment of a few bytes behind; its id is in the pid file."""
        lines = self._pid_file()
        if len(lines) >= 7 and len(lines[6].split()) == 2:
            processes.run(["ipcrm", "-m", lines[6].split()[1]], folder=self.folder)
