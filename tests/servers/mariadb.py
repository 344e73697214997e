"""A private MariaDB: one folder, one loopback port, root without a password, removed completely."""

import signal
from collections.abc import Mapping
from pathlib import Path

import pymysql

from tests.servers import debian, processes
from tests.servers.ports import free_port
from tests.servers.server import Server
from tests.servers.waiting import wait_until

_SETTINGS = {
    "bind-address": "127.0.0.1",
    "skip-name-resolve": "1",
    "max-connections": "200",
    "innodb-buffer-pool-size": "128M",
    "innodb-log-file-size": "48M",
    "performance-schema": "0",
    # One undo log and no buffer dump: a start takes half as long.
    "innodb-buffer-pool-load-at-startup": "0",
    "innodb-buffer-pool-dump-at-shutdown": "0",
}
_DURABLE = {"innodb-flush-log-at-trx-commit": "1", "sync-binlog": "1"}
# Tests do not need durability against power loss; a killed process loses nothing that reached the kernel.
_NOT_DURABLE = {
    "innodb-flush-log-at-trx-commit": "2",
    "sync-binlog": "0",
    "innodb-doublewrite": "0",
    "innodb-flush-method": "nosync",
}


class MariaDBServer(Server):
    """One instance. `stop` and `kill` keep the data, `start` brings it back, `close` removes it."""

    host = "127.0.0.1"
    """Where clients connect."""
    namespace = ""
    """The network namespace in which it runs; empty: that of the tests."""

    def __init__(self, *, durable: bool = True, settings: Mapping[str, str] | None = None) -> None:
        self._binary = debian.MARIADBD.path()
        self._install = debian.MARIADB_INSTALL_DB.path()
        self._settings = _SETTINGS | (_DURABLE if durable else _NOT_DURABLE) | dict(settings or {})
        self._started: processes.Started | None = None
        self._administrator: pymysql.Connection | None = None
        self.port = free_port()
        self.folder = processes.make_folder("mariadb", in_memory=not durable)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def pid(self) -> int:
        return self._running().pid

    def url(self, database: str = "mysql") -> str:
        return f"mariadb://root@{self.host}:{self.port}/{database}"

    def start(self) -> None:
        """Returns when the server takes connections; makes the data folder the first time."""
        if not self.data.exists():
            self._make_data()
        settings = self._settings | {
            "datadir": str(self.data),
            "tmpdir": str(self.folder),
            "socket": str(self.folder / "socket"),
            "pid-file": str(self.folder / "pid"),
            "port": str(self.port),
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        self._started = processes.spawn(
            [self._binary, "--no-defaults", *options],
            name="MariaDB",
            folder=self.folder,
            log=self.folder / "mariadb.log",
            ports=() if self.namespace else (self.port,),
            namespace=self.namespace,
        )
        wait_until(self._ready, bound=90, what=f"MariaDB on port {self.port} takes connections")

    def stop(self) -> None:
        """Ends it in order."""
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
        """Ends the server if it runs and removes its folder."""
        if self._started is not None:
            self.kill()
        processes.remove_folder(self.folder)

    def create_database(self, name: str) -> None:
        """Create an empty database."""
        self.execute(f"CREATE DATABASE `{name}`")

    def drop_database(self, name: str) -> None:
        """Drop a database. The connections to it are ended first: a transaction in it would make the DROP wait."""
        for (connection,) in self.execute(f"SELECT id FROM information_schema.processlist WHERE db = '{name}'"):
            self.execute(f"KILL {connection}", ignore=1094)
        self.execute(f"DROP DATABASE IF EXISTS `{name}`")

    def execute(self, statement: str, *, ignore: int | None = None) -> list[tuple[object, ...]]:
        """Run a statement as root, over one connection that is kept; `ignore` is an error that is no failure."""
        if self._administrator is None:
            self._administrator = pymysql.connect(host=self.host, port=self.port, user="root", autocommit=True)
        with self._administrator.cursor() as cursor:
            try:
                cursor.execute(statement)
            except pymysql.MySQLError as error:
                if error.args[0] != ignore:
                    raise
                return []
            return list(cursor.fetchall())

    def _make_data(self) -> None:
        processes.run(
            [
                self._install,
                *("--no-defaults", f"--datadir={self.data}", "--auth-root-authentication-method=normal"),
                *("--skip-test-db", "--skip-name-resolve", f"--tmpdir={self.folder}"),
                *("--innodb-flush-method=nosync", "--innodb-log-file-size=48M"),
            ],
            folder=self.folder,
        )

    def _ready(self) -> bool:
        self._running().must_run()
        try:
            pymysql.connect(host=self.host, port=self.port, user="root", connect_timeout=5).close()
        except pymysql.MySQLError:
            return False
        return True

    def _running(self) -> processes.Started:
        if self._started is None:
            raise processes.ServerFailed("this MariaDB is not running")
        return self._started

    def _wait_gone(self, started: processes.Started) -> None:
        started.wait_gone(bound=90)
        if self._administrator is not None:
            self._administrator.close()
            self._administrator = None
        processes.forget(started)
        self._started = None
