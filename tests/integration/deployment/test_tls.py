"""TLS settings on real servers that ask for the client's certificate, and on a server for Kafka's handshake."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pillarbox import ConfigurationError, TlsOptions, UnavailableError, open_transport
from pillarbox.core.errors import PillarboxError
from pillarbox.core.transport import Address, Outgoing
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.nats import NatsTransport
from pillarbox.transports.rabbitmq import RabbitMQTransport
from pillarbox.transports.redis import RedisTransport
from tests.docs.pages import ROOT, blocks
from tests.integration.cli.running import fresh_pillarbox
from tests.integration.deployment.certificates import certificates, encrypt_key
from tests.servers.availability import available
from tests.servers.mariadb import MariaDBServer
from tests.servers.nats import NatsServer
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer


@pytest.fixture(scope="module")
def files() -> Iterator[Path]:
    with certificates() as folder:
        yield folder


@dataclass(frozen=True)
class SecureBroker:
    """A broker that accepts clients with a certificate of its authority only."""

    scheme: str
    port: int
    address: Address

    def url(self, host: str = "localhost") -> str:
        return f"{self.scheme}://{host}:{self.port}"


@contextmanager
def secure_rabbitmq(files: Path, request: pytest.FixtureRequest) -> Iterator[SecureBroker]:
    server: RabbitMQServer = request.getfixturevalue("rabbitmq_server")
    port = free_port()
    paths = {"cacertfile": "authority.pem", "certfile": "server.pem", "keyfile": "server.key"}
    options = [f'{{{option}, "{files / file}"}}' for option, file in paths.items()]
    options += ["{verify, verify_peer}", "{fail_if_no_peer_cert, true}"]
    server.evaluate(
        f"""rabbit_networking:ensure_ssl(),
        ok = rabbit_networking:start_ssl_listener({{"127.0.0.1", {port}}}, [{", ".join(options)}], 1)"""
    )
    yield SecureBroker("amqps", port, RabbitMQTransport.to(routing_key="tls.test"))
    server.evaluate(f'ok = rabbit_networking:stop_tcp_listener({{"127.0.0.1", {port}}})')


@contextmanager
def secure_nats(files: Path, request: pytest.FixtureRequest) -> Iterator[SecureBroker]:
    lines = [
        f'tls {{ cert_file: "{files}/server.pem", key_file: "{files}/server.key",'
        f' ca_file: "{files}/authority.pem", verify: true }}'
    ]
    with available(lambda: NatsServer(lines=lines)) as server:
        yield SecureBroker("tls", server.port, NatsTransport.to(subject="tls.test"))


@contextmanager
def secure_redis(files: Path, request: pytest.FixtureRequest) -> Iterator[SecureBroker]:
    port = free_port()
    settings = {
        "tls-port": str(port),
        "tls-cert-file": str(files / "server.pem"),
        "tls-key-file": str(files / "server.key"),
        "tls-ca-cert-file": str(files / "authority.pem"),
        "tls-auth-clients": "yes",
    }
    with available(lambda: RedisServer(settings=settings)):
        yield SecureBroker("rediss", port, RedisTransport.to(stream="tls.test"))


@pytest.fixture(scope="module", params=[secure_rabbitmq, secure_nats, secure_redis], ids=["rabbitmq", "nats", "redis"])
def broker(request: pytest.FixtureRequest, files: Path) -> Iterator[SecureBroker]:
    start: Callable[..., Any] = request.param
    with start(files, request) as broker:
        yield broker


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[Any]:
    """The transport as settings open it."""
    transport = open_transport(url, **options)
    try:
        yield transport
    finally:
        await transport.aclose()


def message(to: Address) -> list[Outgoing]:
    return [outgoing("e1", to)]


def ours(files: Path) -> dict[str, str]:
    return {
        "ca_file": str(files / "authority.pem"),
        "cert_file": str(files / "client.pem"),
        "key_file": str(files / "client.key"),
    }


async def test_a_client_with_a_certificate_is_accepted(broker: SecureBroker, files: Path) -> None:
    async with opened(broker.url(), **ours(files)) as transport:
        assert await transport.send(message(broker.address)) == [None]


async def test_a_client_without_the_right_certificate_sends_nothing(broker: SecureBroker, files: Path) -> None:
    stranger = {"cert_file": str(files / "stranger.pem"), "key_file": str(files / "stranger.key")}
    for options in ({"ca_file": ours(files)["ca_file"]}, ours(files) | stranger):
        async with opened(broker.url(), **options, send_timeout="20s", connect_timeout="20s") as transport:
            [result] = await transport.send(message(broker.address))
            assert isinstance(result, UnavailableError)


async def test_what_is_verified_can_be_chosen(broker: SecureBroker, files: Path) -> None:
    """The certificate is for `localhost`, not for the address, and no authority of the system signed it."""
    identity = {name: ours(files)[name] for name in ("cert_file", "key_file")}
    trusting = ours(files)
    for options, accepted in (
        (trusting, False),
        (trusting | {"verify": "ca"}, True),
        (identity | {"verify": "ca"}, False),
        (identity | {"verify": "none"}, True),
    ):
        async with opened(broker.url("127.0.0.1"), **options) as transport:
            [result] = await transport.send(message(broker.address))
            assert (result is None) is accepted, (options, result)
            assert accepted or "certificate" in str(result).lower()


@pytest.mark.parametrize("scheme", ["amqp", "nats", "redis", "kafka"])
def test_tls_options_need_a_url_with_tls(scheme: str) -> None:
    with pytest.raises(ConfigurationError, match=r"ca_file needs a URL that begins with \w+://"):
        open_transport(f"{scheme}://localhost", ca_file="/etc/ca.pem")


def test_files_that_cannot_be_read_are_named(files: Path) -> None:
    key = encrypt_key(files, "client")
    for options, named in (
        (TlsOptions(ca_file="/nowhere/ca.pem"), "ca_file '/nowhere/ca.pem'"),
        (TlsOptions(ca_file=str(files / "client.key")), "ca_file"),
        (TlsOptions(cert_file=str(files / "client.pem"), key_file=str(files / "server.key")), "key_file"),
        (TlsOptions(cert_file=str(files / "client.pem"), key_file=str(key)), "passphrase"),
        (TlsOptions(key_file=str(files / "client.key")), "cert_file is not"),
    ):
        with pytest.raises(ConfigurationError, match=named):
            RabbitMQTransport("amqps://localhost", tls=options)


def test_tls_is_given_once() -> None:
    with pytest.raises(ConfigurationError, match="both given"):
        open_transport("amqps://localhost", ca_file="/etc/ca.pem", tls=TlsOptions())


@asynccontextmanager
async def handshakes(files: Path) -> AsyncIterator[tuple[int, "asyncio.Queue[str]"]]:
    """A port that asks for certificates, and the names of those that clients have shown."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(files / "authority.pem"))
    context.load_cert_chain(files / "server.pem", files / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    shown: asyncio.Queue[str] = asyncio.Queue()

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        shown.put_nowait(str(writer.get_extra_info("peercert")["subject"]))
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1], shown
    finally:
        server.close()


async def test_kafka_shows_its_certificate(files: Path) -> None:
    """The server of this test knows TLS only: librdkafka's own broker for tests has no TLS."""
    async with handshakes(files) as (port, shown), opened(f"kafkas://localhost:{port}", **ours(files)) as transport:
        sending = asyncio.create_task(transport.send(message(transport.to(topic="t"))))
        async with asyncio.timeout(60):
            assert "client" in await shown.get()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


@pytest.fixture(scope="module")
def secure_postgres(files: Path) -> Iterator[PostgresServer]:
    """A server that accepts clients with a certificate for the user's name, over TLS only."""
    settings = {
        "ssl": "on",
        "ssl_cert_file": str(files / "server.pem"),
        "ssl_key_file": str(files / "server.key"),
        "ssl_ca_file": str(files / "authority.pem"),
    }
    with available(lambda: PostgresServer(durable=False, settings=settings)) as server:
        server.stop()
        (server.data / "pg_hba.conf").write_text("hostssl all all all trust clientcert=verify-ca\n")
        server.start()
        yield server


@pytest.mark.contrib
async def test_postgresql_shows_its_certificate(secure_postgres: PostgresServer, files: Path) -> None:
    url = f"postgresql://postgres@localhost:{secure_postgres.port}/postgres?sslmode=verify-full"
    trusting = f"{url}&sslrootcert={files}/authority.pem"
    async with aclosing(PostgresStore(trusting)) as store:
        with pytest.raises(PillarboxError, match="certificate"):
            await store.schema.status()
    async with aclosing(PostgresStore(f"{trusting}&sslcert={files}/client.pem&sslkey={files}/client.key")) as store:
        assert (await store.schema.status()).version == 0


async def test_mariadb_shows_its_certificate_and_can_verify_the_authority_only(files: Path) -> None:
    settings = {
        "ssl-cert": str(files / "server.pem"),
        "ssl-key": str(files / "server.key"),
        "ssl-ca": str(files / "authority.pem"),
    }
    with available(lambda: MariaDBServer(durable=False, settings=settings)) as server:
        server.execute("CREATE USER app@'%' REQUIRE X509")
        server.execute("GRANT ALL ON *.* TO app@'%'")
        identity = f"ssl_cert={files}/client.pem&ssl_key={files}/client.key&ssl_ca={files}/authority.pem"
        url = f"mariadb://app@127.0.0.1:{server.port}/mysql"
        for query, accepted in (
            (f"{identity}&ssl_mode=verify_ca", True),
            (f"{identity}&ssl_mode=verify_identity", False),
            (f"ssl_ca={files}/authority.pem&ssl_mode=verify_ca", False),
            (f"ssl_cert={files}/client.pem&ssl_key={files}/client.key&ssl_mode=verify_ca", False),
        ):
            async with aclosing(MariaDBStore(f"{url}?{query}")) as store:
                if accepted:
                    assert (await store.schema.status()).version == 0
                else:
                    with pytest.raises(PillarboxError):
                        await store.schema.status()


@pytest.mark.contrib
def test_the_settings_of_the_page_connect(
    secure_postgres: PostgresServer, files: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """With the other host and the other node down."""
    [settings] = blocks(ROOT / "docs/how-to/tls-and-failover.md", "toml")
    with secure_rabbitmq(files, request) as rabbitmq:
        for there, here in {
            "app@db1.example.com:5432,db2.example.com:5432/shop": (
                f"postgres@localhost:{free_port()},localhost:{secure_postgres.port}/postgres"
            ),
            "app@mq1.example.com:5671,mq2.example.com:5671/shop": f"localhost:{free_port()},localhost:{rabbitmq.port}/",
            "/etc/pillarbox/tls/ca.pem": str(files / "authority.pem"),
            "/etc/pillarbox/tls": str(files),
        }.items():
            assert there in settings
            settings = settings.replace(there, here)
        (tmp_path / "pillarbox.toml").write_text(settings)
        for command, shown in (
            (["schema", "apply"], ""),
            (["record", "tls.page", "{}"], ""),
            (["relay", "--until-empty"], "no pending events remain"),
        ):
            done = fresh_pillarbox(*command, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            assert shown in done.stderr
