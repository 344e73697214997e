"""PgBouncer with transaction pooling in front of a private PostgreSQL."""

import signal
from collections.abc import Iterable

from tests.servers import debian, processes
from tests.servers.ports import free_port, is_open
from tests.servers.postgres import PostgresServer
from tests.servers.server import Server
from tests.servers.waiting import wait_until

_CONFIGURATION = """\
[databases]
* = host=127.0.0.1 port={postgres_port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {users}
admin_users = postgres
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 200
ignore_startup_parameters = {ignored}
"""


class PgBouncer(Server):
    """One pooler; every database of the server behind it can be reached through it."""

    def __init__(self, server: PostgresServer, *, pool_size: int = 20, ignored: Iterable[str] = ()) -> None:
        self._binary = debian.PGBOUNCER.path()
        self._server = server
        self._pool_size = pool_size
        self._ignored = ", ".join(ignored)
        self._started: processes.Started | None = None
        self.port = free_port()
        self.folder = processes.make_folder("pgbouncer")

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        users = self.folder / "users.txt"
        users.write_text('"postgres" ""\n')
        configuration = self.folder / "pgbouncer.ini"
        configuration.write_text(
            _CONFIGURATION.format(
                postgres_port=self._server.port,
                port=self.port,
                users=users,
                pool_size=self._pool_size,
                ignored=self._ignored,
            )
        )
        processes.hand_over(users, configuration)
        self._started = started = processes.spawn(
            [self._binary, str(configuration)],
            name="PgBouncer",
            folder=self.folder,
            log=self.folder / "pgbouncer.log",
            ports=(self.port,),
        )
        wait_until(
            lambda: started.must_run() and is_open(self.port),
            bound=90,
            what=f"PgBouncer on port {self.port} takes connections",
        )

    def stop(self) -> None:
        """Ends it at once, with the connections it holds (SIGINT would wait for their transactions)."""
        started = self._running()
        started.signal(signal.SIGTERM)
        self._wait_gone(started)

    def kill(self) -> None:
        """Ends the pooler with SIGKILL."""
        started = self._running()
        started.kill()
        self._wait_gone(started)

    def close(self) -> None:
        if self._started is not None:
            self.stop()
        processes.remove_folder(self.folder)

    def _running(self) -> processes.Started:
        if self._started is None:
            raise processes.ServerFailed("this PgBouncer is not running")
        return self._started

    def _wait_gone(self, started: processes.Started) -> None:
        started.wait_gone(bound=90)
        processes.forget(started)
        self._started = None
