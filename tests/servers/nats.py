"""A private NATS server with JetStream, and a cluster of three: own folders and ports, everything on loopback."""

import signal
from collections.abc import Mapping, Sequence

from tests.servers import debian, processes
from tests.servers.ports import free_port, is_open
from tests.servers.server import Server
from tests.servers.waiting import wait_until


class NatsServer(Server):
    """One server. `stop` and `kill` keep the streams, `start` brings them back, `close` removes them.

    `lines` are further lines of its configuration file. `routes`: the addresses of all servers of its cluster.
    """

    host = "127.0.0.1"
    namespace = ""
    """The network namespace in which it runs; empty: that of the tests."""

    def __init__(
        self,
        *,
        lines: Sequence[str] = (),
        name: str = "one",
        jetstream: bool = True,
        routes: Mapping[str, str] | None = None,
    ) -> None:
        self._binary = debian.NATS_SERVER.path()
        self._started: processes.Started | None = None
        self.lines = lines
        self._jetstream = jetstream
        self._routes = dict(routes or {})
        self.name = name
        self.port = free_port()
        self.folder = processes.make_folder("nats")

    @property
    def pid(self) -> int:
        return self._running().pid

    def url(self, credentials: str = "") -> str:
        return f"nats://{credentials}{self.host}:{self.port}"

    def start(self) -> None:
        """Returns when the server takes connections, which it does after its streams are recovered."""
        settings = self.folder / "nats.conf"
        settings.write_text("\n".join([*self._settings(), *self.lines, ""]))
        processes.hand_over(settings)
        own = self._routes.get(self.name, "").rpartition(":")[2]
        self._started = processes.spawn(
            [self._binary, "-c", str(settings)],
            name="NATS",
            folder=self.folder,
            log=self.folder / "nats.log",
            ports=() if self.namespace else (self.port, *([int(own)] if own else [])),
            namespace=self.namespace,
        )
        wait_until(self._ready, bound=60, what=f"NATS on port {self.port} takes connections")

    def stop(self) -> None:
        """Ends the server in order."""
        started = self._running()
        started.signal(signal.SIGTERM)
        self._wait_gone(started)

    def kill(self) -> None:
        """Ends the server with SIGKILL."""
        started = self._running()
        started.kill()
        self._wait_gone(started)

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Kills the server if it runs, and removes the folder."""
        if self._started is not None:
            self.kill()
        processes.remove_folder(self.folder)

    def _settings(self) -> list[str]:
        lines = [f"server_name: {self.name}", f'listen: "{self.host}:{self.port}"']
        if self._jetstream:
            lines.append(f'jetstream {{ store_dir: "{self.folder}/data", max_mem: 64MB, max_file: 1GB }}')
        if self._routes:
            others = ", ".join(f'"nats://{address}"' for name, address in self._routes.items() if name != self.name)
            lines.append(f'cluster {{ name: tests, listen: "{self._routes[self.name]}", routes: [{others}] }}')
        return lines

    def _ready(self) -> bool:
        return self._running().must_run() and is_open(self.port, self.host)

    def _running(self) -> processes.Started:
        if self._started is None:
            raise processes.ServerFailed("this NATS server is not running")
        return self._started

    def _wait_gone(self, started: processes.Started) -> None:
        started.wait_gone(bound=60)
        processes.forget(started)
        self._started = None


class NatsCluster(Server):
    """Three servers."""

    def __init__(self) -> None:
        routes = {name: f"127.0.0.1:{free_port()}" for name in ("n1", "n2", "n3")}
        self.servers = {name: NatsServer(name=name, routes=routes) for name in routes}

    def url(self) -> str:
        return "nats://" + ",".join(f"{server.host}:{server.port}" for server in self.servers.values())

    def start(self) -> None:
        """Returns when all take connections; the cluster may have no leader yet."""
        for server in self.servers.values():
            server.start()

    def close(self) -> None:
        for server in self.servers.values():
            server.close()
