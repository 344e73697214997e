"""A private RabbitMQ: own node, own home, own port mapper (epmd), everything on loopback."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pillarbox.testing.servers import binaries, processes
from pillarbox.testing.servers.ports import free_port, is_open
from pillarbox.testing.servers.server import Server
from pillarbox.testing.servers.waiting import wait_until

# The disk of a test machine may be small, and no test fills it.
_SETTINGS = {"disk_free_limit.absolute": "10MB"}
_APPLICATIONS = re.compile(r"\{\s*applications\s*,\s*\[(.*?)\]", re.DOTALL)


class RabbitMQServer(Server):
    """One broker. `stop` and `kill` keep the messages, `start` brings them back, `close` removes them.

    `settings` are lines of its configuration file.
    """

    host = "127.0.0.1"
    """Where clients connect."""
    peer_host = "127.0.0.1"
    """Where other nodes connect."""
    namespace = ""
    """The network namespace in which it runs; empty: that of the tests."""

    def __init__(self, *, settings: Mapping[str, str] | None = None) -> None:
        self._settings = _SETTINGS | dict(settings or {})
        self._binary = binaries.RABBITMQ_SERVER.path()
        self._epmd_binary = binaries.EPMD.path()
        self._started: processes.Started | None = None
        self._epmd: processes.Started | None = None
        self._epmd_port, self._distribution_port, self._ctl_port = free_port(), free_port(), free_port()
        self.port = free_port()
        self.node = f"pillarbox-{self.port}@localhost"
        self.folder = processes.make_folder("rabbitmq")

    @property
    def pid(self) -> int:
        return self._running().pid

    def url(self, vhost: str = "%2F") -> str:
        return f"amqp://guest:guest@{self.host}:{self.port}/{vhost}"

    def start(self) -> None:
        """Returns when the broker takes connections, which it does after its queues are recovered."""
        self._prepare_folder()
        self._start_epmd()
        self._started = processes.spawn(
            [self._binary],
            name="RabbitMQ",
            folder=self.folder,
            log=self.folder / "rabbitmq.log",
            ports=() if self.namespace else (self.port, self._distribution_port),
            environment=self.environment(),
            namespace=self.namespace,
        )
        wait_until(self._ready, bound=120, what=f"RabbitMQ on port {self.port} takes connections")

    def stop(self) -> None:
        """Ends the broker in order."""
        started = self._running()
        started.signal(signal.SIGTERM)
        self._wait_gone(started)

    def kill(self) -> None:
        """Ends every process of the broker with SIGKILL."""
        started = self._running()
        started.kill()
        self._wait_gone(started)

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Kills the broker if it runs, then its epmd, and removes the folder."""
        if self._started is not None:
            self.kill()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait_gone(bound=90)
            processes.forget(self._epmd)
            self._epmd = None
        processes.remove_folder(self.folder)

    def environment(self) -> dict[str, str]:
        peers = f"-kernel inet_dist_use_interface {{{self.peer_host.replace('.', ',')}}}"
        return {
            # Makes the script become the server instead of watching over it, so that its pid is the server's.
            "detached": "true",
            "ERL_CRASH_DUMP": str(self.folder / "erl_crash.dump"),
            "ERL_EPMD_ADDRESS": self.peer_host,
            "ERL_EPMD_PORT": str(self._epmd_port),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "no-such-file"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_CTL_DIST_PORT_MIN": str(self._ctl_port),
            "RABBITMQ_CTL_DIST_PORT_MAX": str(self._ctl_port),
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_LOG_BASE": str(self.folder),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_NODENAME": self.node,
            "RABBITMQ_NODE_IP_ADDRESS": self.host,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_PLUGINS_DIR": str(self.folder / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"{peers} -start_epmd false",
        }

    def _prepare_folder(self) -> None:
        plugins = self.folder / "plugins"
        if plugins.exists():
            return
        plugins.mkdir()
        for library in needed_libraries(installed_libraries(self._binary)):
            (plugins / library.name).symlink_to(library)
        enabled, configuration = self.folder / "enabled_plugins", self.folder / "rabbitmq.conf"
        enabled.write_text("[].\n")
        configuration.write_text("".join(f"{name} = {value}\n" for name, value in self._settings.items()))
        processes.hand_over(plugins, enabled, configuration)

    def _start_epmd(self) -> None:
        """In the foreground and by us: the one that a node starts by itself would outlive it unseen."""
        if self._epmd is not None:
            return
        self._epmd = processes.spawn(
            [self._epmd_binary, "-port", str(self._epmd_port), "-address", f"{self.host},{self.peer_host}"],
            name="epmd",
            folder=self.folder,
            log=self.folder / "epmd.log",
            ports=() if self.namespace else (self._epmd_port,),
            namespace=self.namespace,
        )
        epmd = self._epmd
        wait_until(
            lambda: epmd.must_run() and is_open(self._epmd_port, self.host),
            bound=90,
            what=f"epmd on port {self._epmd_port} takes connections",
        )

    def _ready(self) -> bool:
        return self._running().must_run() and is_open(self.port, self.host)

    def _running(self) -> processes.Started:
        if self._started is None:
            raise processes.ServerFailed("this RabbitMQ is not running")
        return self._started

    def _wait_gone(self, started: processes.Started) -> None:
        started.wait_gone(bound=90)
        processes.forget(started)
        self._started = None


def installed_libraries(binary: str) -> dict[str, Path]:
    """The Erlang libraries that come with the broker, by name."""
    folders = (Path(binary).parent.parent / "lib").glob("rabbitmq_server-*/plugins/*-*/ebin/*.app")
    return {app.stem: app.parent.parent for app in folders}


def needed_libraries(installed: dict[str, Path]) -> Iterator[Path]:
    """Those of a broker without plugins: at its start it reads every library it is shown."""
    needed: set[str] = set()
    open_ends = ["rabbit", "rabbitmq_prelaunch"]
    while open_ends:
        name = open_ends.pop()
        if name in installed and name not in needed:
            needed.add(name)
            yield installed[name]
            open_ends.extend(_applications(installed[name] / "ebin" / f"{name}.app"))


def _applications(app: Path) -> Iterable[str]:
    listed = _APPLICATIONS.search(app.read_text())
    return re.findall(r"\w+", listed.group(1)) if listed else ()
