"""A remote server gets no password before its certificate is verified, unless the URL says otherwise.

0.0.0.0 stands for a remote server: it reaches this machine and is not a loopback address.
"""

from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from pillarbox.core.errors import ConfigurationError, StoreUnavailableError
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.stores.mariadb.tls import address_of
from tests.integration.doctor.asking import ask
from tests.servers import debian, processes
from tests.servers.availability import available
from tests.servers.mariadb import MariaDBServer


@pytest.fixture(scope="module")
def secure() -> Iterator[tuple[MariaDBServer, Path]]:
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
    settings = {"ssl-cert": str(folder / "server.pem"), "ssl-key": str(folder / "server.key")}
    try:
        with available(lambda: MariaDBServer(durable=False, settings=settings)) as server:
            server.create_database("shop")
            yield server, folder / "authority.pem"
    finally:
        processes.remove_folder(folder)


def remote(server: MariaDBServer, parameters: str) -> str:
    return f"mariadb://root@0.0.0.0:{server.port}/shop{parameters}"


async def test_the_certificate_of_a_remote_server_is_verified(secure: tuple[MariaDBServer, Path]) -> None:
    server, authority = secure
    async with aclosing(MariaDBStore(remote(server, ""))) as store:
        with pytest.raises(StoreUnavailableError, match=r"cannot be trusted.*ssl_ca=FILE"):
            await store.schema.status()
    async with aclosing(MariaDBStore(remote(server, f"?ssl_ca={authority}"))) as store:
        assert (await store.schema.status()).version == 0
        assert (await ask(store.diagnosis.checks(), "store.encryption")).result == "pass"


@pytest.mark.parametrize(("mode", "result"), [("required", "warn"), ("disabled", "fail")])
async def test_the_url_may_ask_for_less(secure: tuple[MariaDBServer, Path], mode: str, result: str) -> None:
    server, _ = secure
    async with aclosing(MariaDBStore(remote(server, f"?ssl_mode={mode}"))) as store:
        assert (await store.schema.status()).version == 0
        assert (await ask(store.diagnosis.checks(), "store.encryption")).result == result


async def test_a_server_without_a_certificate_is_not_trusted(mariadb_server: MariaDBServer) -> None:
    async with aclosing(MariaDBStore(f"mariadb://root@0.0.0.0:{mariadb_server.port}/mysql")) as store:
        with pytest.raises(StoreUnavailableError):
            await store.schema.status()


@pytest.mark.parametrize(
    ("url", "mode"),
    [
        ("mariadb://db/shop", "verify_identity"),
        ("mysql://127.0.0.1/shop", "disabled"),
        ("mariadb://localhost/shop", "disabled"),
        ("mariadb://localhost/shop?ssl_ca=/ca.pem", "verify_identity"),
        ("mariadb://db/shop?unix_socket=/run/mysqld/mysqld.sock", "disabled"),
        ("mariadb://db/shop?ssl_mode=required", "required"),
    ],
)
def test_the_mode_of_a_url(url: str, mode: str) -> None:
    assert address_of(url).mode == mode


def test_a_certificate_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        address_of("mariadb://db/shop?ssl_ca=/nowhere/ca.pem").context()
