"""The certificate of a broker and that of a database expire under load, and are replaced: `make drills`.

Open connections go on. New ones are refused until the certificate is replaced, and nothing is lost.
"""

from __future__ import annotations

import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from pillarbox.ops.drill.ledger import ARRIVALS, LineCount
from tests.faults.drilling import drilled
from tests.servers.availability import available
from tests.servers.certificates import DAY, Authority
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until
from tests.soak.outages import HookSocket

LONG = 300.0
SHORT = 15
"""Seconds of the shortest certificate."""
ENOUGH = 300
"""Events that arrive only if writers, relays and readers work: the drill allows fewer to be pending."""
EXPIRED = 10
"""OpenSSL's code for an expired certificate."""
REASON = "certificate has expired"


class Expiry(ABC):
    """Lets a certificate expire while connections are open, closes them, and replaces the certificate."""

    def __init__(self, authority: Authority, port: int, arrivals: Path) -> None:
        self._authority = authority
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
        self._authority.issue(seconds=DAY)
        self.reload()

    @abstractmethod
    def reload(self) -> None:
        """Let the server read its certificate again."""

    @abstractmethod
    def close_connections(self) -> None: ...

    @abstractmethod
    def ask_for_tls(self, connection: socket.socket) -> None: ...

    def _is_used_in_time(self, seconds: int) -> bool:
        """Whether all clients connect with a certificate of so many seconds before it expires."""
        self._authority.issue(seconds=seconds)
        self.reload()
        self.close_connections()
        before = self._arrived()
        wait_until(lambda: self._arrived() >= before + ENOUGH or self._is_expired(), bound=120, what="clients connect")
        return not self._is_expired()

    def _is_expired(self) -> bool:
        context = ssl.create_default_context(cafile=self._authority.certificate)
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            self.ask_for_tls(connection)
            try:
                context.wrap_socket(connection, server_hostname="localhost").close()
            except ssl.SSLCertVerificationError as error:
                return error.verify_code == EXPIRED
        return False

    def _arrived(self) -> int:
        return self._arrivals.update()


class BrokerExpiry(Expiry):
    """Of a RabbitMQ with this port for TLS."""

    def __init__(self, authority: Authority, port: int, arrivals: Path) -> None:
        super().__init__(authority, port, arrivals)
        files = {"cacertfile": authority.certificate, "certfile": authority.issued, "keyfile": authority.key}
        settings = {f"ssl_options.{name}": str(path) for name, path in files.items()}
        self.server = RabbitMQServer(settings=settings | {"listeners.ssl.1": f"127.0.0.1:{port}"})

    def reload(self) -> None:
        self.server.evaluate("ok = ssl:clear_pem_cache()")

    def close_connections(self) -> None:
        self.server.evaluate('ok = rabbit_networking:close_connections(rabbit_networking:local_connections(), "test")')

    def ask_for_tls(self, connection: socket.socket) -> None:
        """A connection begins with it."""


class DatabaseExpiry(Expiry):
    """Of a PostgreSQL."""

    def __init__(self, authority: Authority, arrivals: Path) -> None:
        files = {"ssl_cert_file": str(authority.issued), "ssl_key_file": str(authority.key)}
        self.server = PostgresServer(settings=files | {"ssl": "on"})
        super().__init__(authority, self.server.port, arrivals)

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


@pytest.fixture
def authorities() -> Iterator[tuple[Authority, Authority]]:
    """For the broker and for the database."""
    with closing(available(Authority)) as one, closing(available(Authority)) as other:
        yield one, other


@pytest.fixture
def broker(folder: Path, authorities: tuple[Authority, Authority]) -> Iterator[BrokerExpiry]:
    expiry = available(lambda: BrokerExpiry(authorities[0], free_port(), folder / ARRIVALS))
    with expiry.server:
        yield expiry


@pytest.fixture
def database(folder: Path, authorities: tuple[Authority, Authority]) -> Iterator[DatabaseExpiry]:
    expiry = available(lambda: DatabaseExpiry(authorities[1], folder / ARRIVALS))
    with expiry.server:
        yield expiry


def test_certificates_that_expire_and_are_replaced_lose_nothing(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    authorities: tuple[Authority, Authority],
    broker: BrokerExpiry,
    database: DatabaseExpiry,
) -> None:
    of_broker, of_database = (authority.certificate for authority in authorities)
    monkeypatch.setenv("PILLARBOX_TRANSPORTS__RABBIT__URL", f"amqps://guest:guest@localhost:{broker.port}/")
    monkeypatch.setenv("PILLARBOX_TRANSPORTS__RABBIT__CA_FILE", str(of_broker))
    with closing(HookSocket(tmp_path, {"broker": broker, "database": database})) as hooks:
        result = drilled(
            folder,
            monkeypatch,
            "kill",
            "cut-broker",
            "cut-database",
            store=f"{database.server.url()}?sslmode=verify-full&sslrootcert={of_database}",
            seconds=LONG,
            faults=6,
            cut_broker=hooks.command("broker", "cut"),
            restore_broker=hooks.command("broker", "restore"),
            cut_database=hooks.command("database", "cut"),
            restore_database=hooks.command("database", "restore"),
        )
    assert (result.conclusion, result.violations) == ("passed", [])
    assert result.effective["cut-broker"] > 0
    assert result.effective["cut-database"] > 0
    said = "".join(log.read_text() for log in folder.glob("relay-*.log"))
    for server in ("RabbitMQ", "PostgreSQL"):
        assert any(server in line and REASON in line for line in said.splitlines()), f"no relay says why {server} fails"
