"""The certificate of a broker and that of a database expire under load, and are replaced: `make drills`.

Open connections go on. New ones are refused until the certificate is replaced, and nothing is lost.
"""

from __future__ import annotations

import os
import signal
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import ClassVar

import psycopg
import pytest

from pillarbox.ops.drill.ledger import ARRIVALS, LineCount
from tests.extremes.links import FaultyProxy
from tests.faults.drilling import drilled
from tests.servers.availability import available
from tests.servers.certificates import DAY, Authority
from tests.servers.mariadb import MariaDBServer
from tests.servers.nats import NatsServer
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer
from tests.servers.server import Server
from tests.servers.waiting import wait_until
from tests.soak.outages import HookSocket

LONG = 300.0
FAULTS = 4
SHORT = 15
"""Seconds of the shortest certificate."""
ENOUGH = 300
"""Events that arrive only if writers, relays and readers work: the drill allows fewer to be pending."""
EXPIRED = 10
"""OpenSSL's code for an expired certificate."""
REASON = "certificate has expired"


class Expiry(Server, ABC):
    """A server whose certificate expires while connections are open; it closes them, and gets another certificate."""

    name: ClassVar[str]
    """As relays call the server."""

    def __init__(self, server: Server, authority: Authority, port: int, arrivals: Path) -> None:
        self._server = server
        self.authority = authority
        self.port = port
        self._arrivals = LineCount(arrivals)
        authority.issue(seconds=DAY)

    def cut(self) -> None:
        seconds = SHORT
        while not self._is_used_in_time(seconds):
            seconds *= 2
        wait_until(self._is_expired, bound=seconds + 60, what="the certificate expires")
        before = self._arrived()
        wait_until(lambda: self._arrived() >= before + ENOUGH, bound=60, what="events arrive over open connections")
        self.close_connections()

    def restore(self) -> None:
        self.authority.issue(seconds=DAY)
        self.reload()

    @property
    @abstractmethod
    def url(self) -> str:
        """Where clients reach it over TLS."""

    def start(self) -> None:
        self._server.start()

    def close(self) -> None:
        self._server.close()

    @abstractmethod
    def reload(self) -> None:
        """Let the server read its certificate again."""

    @abstractmethod
    def close_connections(self) -> None: ...

    @abstractmethod
    def ask_for_tls(self, connection: socket.socket) -> None: ...

    def _is_used_in_time(self, seconds: int) -> bool:
        """Whether all clients connect with a certificate of so many seconds before it expires."""
        self.authority.issue(seconds=seconds)
        self.reload()
        self.close_connections()
        before = self._arrived()
        wait_until(lambda: self._arrived() >= before + ENOUGH or self._is_expired(), bound=120, what="clients connect")
        return not self._is_expired()

    def _is_expired(self) -> bool:
        context = ssl.create_default_context(cafile=self.authority.certificate)
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            self.ask_for_tls(connection)
            try:
                context.wrap_socket(connection, server_hostname="localhost").close()
            except ssl.SSLCertVerificationError as error:
                return error.verify_code == EXPIRED
        return False

    def _arrived(self) -> int:
        return self._arrivals.update()


class RabbitMQExpiry(Expiry):
    """Of a RabbitMQ with this port for TLS."""

    name = "RabbitMQ"

    def __init__(self, authority: Authority, arrivals: Path) -> None:
        port = free_port()
        files = {"cacertfile": authority.certificate, "certfile": authority.issued, "keyfile": authority.key}
        settings = {f"ssl_options.{name}": str(path) for name, path in files.items()}
        self.server = RabbitMQServer(settings=settings | {"listeners.ssl.1": f"127.0.0.1:{port}"})
        super().__init__(self.server, authority, port, arrivals)

    @property
    def url(self) -> str:
        return f"amqps://guest:guest@localhost:{self.port}/"

    def reload(self) -> None:
        self.server.evaluate("ok = ssl:clear_pem_cache()")

    def close_connections(self) -> None:
        self.server.evaluate('ok = rabbit_networking:close_connections(rabbit_networking:local_connections(), "test")')

    def ask_for_tls(self, connection: socket.socket) -> None:
        """A connection begins with it."""


class NatsExpiry(Expiry):
    """Of a NATS server. It closes no connections on request: clients reach it through a link that does."""

    name = "NATS"

    def __init__(self, authority: Authority, arrivals: Path) -> None:
        files = f'cert_file: "{authority.issued}", key_file: "{authority.key}"'
        self.server = NatsServer(lines=[f"tls {{ {files} }}"])
        super().__init__(self.server, authority, self.server.port, arrivals)
        self._link = FaultyProxy(self.port)

    @property
    def url(self) -> str:
        return f"tls://localhost:{self._link.port}"

    def reload(self) -> None:
        os.kill(self.server.pid, signal.SIGHUP)

    def close_connections(self) -> None:
        self._link.reset()

    def ask_for_tls(self, connection: socket.socket) -> None:
        while b"\n" not in connection.recv(4096):
            pass

    def close(self) -> None:
        self._link.close()
        super().close()


class RedisExpiry(Expiry):
    """Of a Redis with this port for TLS."""

    name = "Redis"

    def __init__(self, authority: Authority, arrivals: Path) -> None:
        port = free_port()
        files = {"ca-cert-file": authority.certificate, "cert-file": authority.issued, "key-file": authority.key}
        settings = {f"tls-{name}": str(path) for name, path in files.items()}
        self.server = RedisServer(settings=settings | {"tls-port": str(port), "tls-auth-clients": "no"})
        super().__init__(self.server, authority, port, arrivals)

    @property
    def url(self) -> str:
        return f"rediss://localhost:{self.port}/0"

    def reload(self) -> None:
        with self.server.client() as client:
            client.config_set("tls-cert-file", str(self.authority.issued))

    def close_connections(self) -> None:
        with self.server.client() as client:
            client.execute_command("CLIENT", "KILL", "TYPE", "normal")

    def ask_for_tls(self, connection: socket.socket) -> None:
        """A connection begins with it."""


class PostgreSQLExpiry(Expiry):
    """Of a PostgreSQL."""

    name = "PostgreSQL"

    def __init__(self, authority: Authority, arrivals: Path) -> None:
        files = {"ssl_cert_file": str(authority.issued), "ssl_key_file": str(authority.key)}
        self.server = PostgresServer(settings=files | {"ssl": "on"})
        super().__init__(self.server, authority, self.server.port, arrivals)

    @property
    def url(self) -> str:
        return f"{self.server.url()}?sslmode=verify-full&sslrootcert={self.authority.certificate}"

    def reload(self) -> None:
        self._run("SELECT pg_reload_conf()")

    def close_connections(self) -> None:
        self._run("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_ssl WHERE ssl AND pid <> pg_backend_pid()")

    def ask_for_tls(self, connection: socket.socket) -> None:
        connection.sendall(bytes.fromhex("0000000804d2162f"))
        assert connection.recv(1) == b"S"

    def _run(self, statement: str) -> None:
        with psycopg.connect(self.server.url(), sslmode="disable", autocommit=True) as connection:
            connection.execute(statement)


class MariaDBExpiry(Expiry):
    """Of a MariaDB."""

    name = "MariaDB"

    def __init__(self, authority: Authority, arrivals: Path) -> None:
        files = {"ssl-cert": str(authority.issued), "ssl-key": str(authority.key)}
        self.server = MariaDBServer(settings=files)
        super().__init__(self.server, authority, self.server.port, arrivals)

    @property
    def url(self) -> str:
        return f"{self.server.url('shop')}?ssl_ca={self.authority.certificate}"

    def start(self) -> None:
        super().start()
        self.server.create_database("shop")

    def reload(self) -> None:
        self.server.execute("FLUSH SSL")

    def close_connections(self) -> None:
        others = "SELECT id FROM information_schema.processlist WHERE db = 'shop'"
        for (connection,) in self.server.execute(others):
            self.server.execute(f"KILL {connection}", ignore=1094)

    def ask_for_tls(self, connection: socket.socket) -> None:
        """Read the greeting, and send a request for TLS with the protocol of MySQL 4.1 and its character set."""
        size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL)[:3], "little")
        connection.recv(size, socket.MSG_WAITALL)
        connection.sendall(bytes.fromhex("20000001008a0800000000012d") + bytes(23))


BROKERS = {"rabbitmq": RabbitMQExpiry, "nats": NatsExpiry, "redis": RedisExpiry}
DATABASES = {"postgresql": PostgreSQLExpiry, "mariadb": MariaDBExpiry}


@contextmanager
def expiring(kind: Callable[[Authority, Path], Expiry], folder: Path) -> Iterator[Expiry]:
    with (
        closing(available(Authority)) as authority,
        available(lambda: kind(authority, folder / ARRIVALS)) as server,
    ):
        yield server


@pytest.mark.parametrize(
    ("of_broker", "of_database"), [("rabbitmq", "postgresql"), ("nats", "mariadb"), ("redis", "postgresql")]
)
def test_certificates_that_expire_and_are_replaced_lose_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, of_broker: str, of_database: str
) -> None:
    with (
        expiring(BROKERS[of_broker], folder) as broker,
        expiring(DATABASES[of_database], folder) as database,
        closing(HookSocket(tmp_path, {"broker": broker, "database": database})) as hooks,
    ):
        monkeypatch.setenv("PILLARBOX_TRANSPORTS__BROKER__URL", broker.url)
        monkeypatch.setenv("PILLARBOX_TRANSPORTS__BROKER__CA_FILE", str(broker.authority.certificate))
        result = drilled(
            folder,
            monkeypatch,
            "kill",
            "cut-broker",
            "cut-database",
            store=database.url,
            seconds=LONG,
            faults=FAULTS,
            cut_broker=hooks.command("broker", "cut"),
            restore_broker=hooks.command("broker", "restore"),
            cut_database=hooks.command("database", "cut"),
            restore_database=hooks.command("database", "restore"),
        )
    assert (result.conclusion, result.violations) == ("passed", [])
    assert result.effective["cut-broker"] > 0
    assert result.effective["cut-database"] > 0
    said = "".join(log.read_text() for log in folder.glob("relay-*.log"))
    for server in (broker.name, database.name):
        assert any(server in line and REASON in line for line in said.splitlines()), f"no relay says why {server} fails"
