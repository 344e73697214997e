"""TLS: the transport sends nothing to a broker whose certificate or host name is not trusted."""

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pillarbox.core.errors import UnavailableError
from pillarbox.core.transport import Outgoing
from tests.integration.rabbitmq.conftest import MakeTransport
from tests.servers import debian, processes
from tests.servers.availability import available
from tests.servers.ports import free_port
from tests.servers.rabbitmq import RabbitMQServer

Batch = Callable[..., list[Outgoing]]
Secure = tuple[int, Path]
"""The port, and the certificate of the authority."""


@pytest.fixture(scope="module")
def certificates() -> Iterator[Path]:
    """An authority of our own and, signed by it, a certificate for `localhost`."""
    folder = processes.make_folder("certificates")
    openssl = available(debian.OPENSSL.path)
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1")

    def request(*arguments: str) -> None:
        processes.run([openssl, "req", "-x509", *new_key, *arguments], folder=folder)

    request(
        "-subj",
        "/CN=authority",
        "-addext",
        "keyUsage=critical,keyCertSign",
        "-keyout",
        "authority.key",
        "-out",
        "authority.pem",
    )
    request(
        *("-subj", "/CN=broker", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=CA:FALSE"),
        *("-CA", "authority.pem", "-CAkey", "authority.key", "-keyout", "broker.key", "-out", "broker.pem"),
    )
    yield folder
    processes.remove_folder(folder)


@pytest.fixture(scope="module")
def secure(rabbitmq_server: RabbitMQServer, certificates: Path) -> Iterator[Secure]:
    """A port of the shared broker for TLS, closed again when the tests end."""
    port = free_port()
    files = {"cacertfile": "authority.pem", "certfile": "broker.pem", "keyfile": "broker.key"}
    options = ", ".join(f'{{{option}, "{certificates / file}"}}' for option, file in files.items())
    rabbitmq_server.evaluate(
        f"""rabbit_networking:ensure_ssl(),
        ok = rabbit_networking:start_ssl_listener({{"127.0.0.1", {port}}}, [{options}], 1)"""
    )
    yield port, certificates / "authority.pem"
    rabbitmq_server.evaluate(f'ok = rabbit_networking:stop_tcp_listener({{"127.0.0.1", {port}}})')


async def test_a_broker_with_a_trusted_certificate_is_used(make: MakeTransport, secure: Secure, batch: Batch) -> None:
    port, authority = secure
    transport = make(f"amqps://localhost:{port}/", tls=ssl.create_default_context(cafile=str(authority)))
    assert await transport.send(batch(5)) == [None] * 5


async def test_a_broker_with_an_untrusted_certificate_receives_nothing(
    make: MakeTransport, secure: Secure, batch: Batch
) -> None:
    port, _ = secure
    [result] = await make(f"amqps://localhost:{port}/").send(batch(1))
    assert isinstance(result, UnavailableError)
    assert "certificate verify failed" in str(result)


async def test_a_broker_with_a_certificate_of_another_host_receives_nothing(
    make: MakeTransport, secure: Secure, batch: Batch
) -> None:
    port, authority = secure
    tls = ssl.create_default_context(cafile=str(authority))
    [result] = await make(f"amqps://127.0.0.1:{port}/", tls=tls).send(batch(1))
    assert isinstance(result, UnavailableError)
    assert "IP address mismatch" in str(result)
