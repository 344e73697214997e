"""A remote server gets no password before its certificate is verified, unless the URL says otherwise.

0.0.0.0 stands for a remote server: it reaches this machine and is not a loopback address.
"""

from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread

import pytest

from pillarbox.core.errors import PillarboxError
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.postgres.tls import encryption, hosts_beyond
from tests.integration.doctor.asking import ask
from tests.servers import debian, processes
from tests.servers.availability import available
from tests.servers.postgres import PostgresServer

CANARY = "canary-password"
ASKS_FOR_ENCRYPTION = b"\x04\xd2\x16\x2f"
ASK_FOR_THE_PASSWORD = b"R\x00\x00\x00\x08\x00\x00\x00\x03"


@contextmanager
def fake_server() -> Iterator[tuple[int, bytearray]]:
    """A fake server that refuses encryption and asks for the password in clear; its port, and what it received."""
    reported = bytearray()

    class Answer(BaseRequestHandler):
        def handle(self) -> None:
            # The driver keeps the connection open after encryption was refused.
            self.request.settimeout(2)
            with suppress(OSError):
                while part := self.request.recv(1024):
                    reported.extend(part)
                    if CANARY.encode() in part:
                        return
                    self.request.sendall(b"N" if part[4:8] == ASKS_FOR_ENCRYPTION else ASK_FOR_THE_PASSWORD)

    with ThreadingTCPServer(("127.0.0.1", 0), Answer) as server:
        answering = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        answering.start()
        try:
            yield server.server_address[1], reported
        finally:
            server.shutdown()
            answering.join()


@pytest.mark.parametrize(("mode", "gives"), [("", False), ("?sslmode=require", False), ("?sslmode=prefer", True)])
async def test_an_unverified_server_does_not_get_the_password(mode: str, gives: bool) -> None:
    with fake_server() as (port, reported):
        store = PostgresStore(f"postgresql://app:{CANARY}@0.0.0.0:{port}/shop{mode}")
        with pytest.raises(PillarboxError) as refused:
            await store.schema.status()
        await store.aclose()
    assert (CANARY.encode() in reported) is gives
    if not gives:
        assert "sslmode=" in str(refused.value)
        assert "sslrootcert=" in str(refused.value)


@pytest.fixture(scope="module")
def secure() -> Iterator[tuple[PostgresServer, Path]]:
    """A server with a certificate for 0.0.0.0, and its CA certificate."""
    folder = processes.make_folder("certificates")
    openssl = available(debian.OPENSSL.path)
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1")
    for arguments in (
        (
            "-subj",
            "/CN=authority",
            "-addext",
            "keyUsage=critical,keyCertSign",
            "-keyout",
            "authority.key",
            "-out",
            "authority.pem",
        ),
        (
            *("-subj", "/CN=database", "-addext", "subjectAltName=IP:0.0.0.0", "-addext", "basicConstraints=CA:FALSE"),
            *("-CA", "authority.pem", "-CAkey", "authority.key", "-keyout", "server.key", "-out", "server.pem"),
        ),
    ):
        processes.run([openssl, "req", "-x509", *new_key, *arguments], folder=folder)
    settings = {"ssl": "on", "ssl_cert_file": str(folder / "server.pem"), "ssl_key_file": str(folder / "server.key")}
    with available(lambda: PostgresServer(durable=False, settings=settings)) as server:
        yield server, folder / "authority.pem"
    processes.remove_folder(folder)


@pytest.mark.contrib
async def test_a_server_is_trusted_by_its_certificate(secure: tuple[PostgresServer, Path]) -> None:
    server, authority = secure
    url = f"postgresql://postgres@0.0.0.0:{server.port}/postgres"
    async with aclosing(PostgresStore(url)) as store:
        with pytest.raises(PillarboxError, match="sslrootcert="):
            await store.schema.status()
    for query, result in (
        (f"?sslrootcert={authority}", "pass"),
        (f"?sslmode=verify-full&sslrootcert={authority}", "pass"),
        ("?sslmode=require", "warn"),
        ("?sslmode=disable", "fail"),
    ):
        async with aclosing(PostgresStore(url + query)) as store:
            assert (await store.schema.status()).version == 0
            assert (await ask(store.diagnosis.checks(), "store.encryption")).result == result, query
    async with aclosing(PostgresStore(server.url())) as store:
        assert (await ask(store.diagnosis.checks(), "store.encryption")).result == "pass"


@pytest.mark.parametrize(
    ("url", "beyond"),
    [
        ("postgresql://app@localhost/shop", []),
        ("postgresql://app@127.8.9.10:5433/shop", []),
        ("postgresql://app@[::1]/shop", []),
        ("postgresql:///shop", []),
        ("postgresql:///shop?host=/run/postgresql", []),
        ("postgresql://app@db/shop", ["db"]),
        ("postgresql://app@10.0.0.7/shop", ["10.0.0.7"]),
        ("postgresql://app@localhost.example.com/shop", ["localhost.example.com"]),
        ("postgresql:///shop?host=localhost,db", ["db"]),
    ],
)
def test_loopback_addresses_are_recognized(url: str, beyond: list[str]) -> None:
    assert hosts_beyond(url) == beyond
    assert (encryption(url) is not None) is bool(beyond)
    join = "&" if "?" in url else "?"
    assert encryption(f"{url}{join}sslmode=disable") is None
