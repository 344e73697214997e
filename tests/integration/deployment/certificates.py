"""Certificates for tests: an authority, a server and two clients, one of them signed by another authority."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import debian, processes
from tests.servers.availability import available

_SIGNS = ("-addext", "keyUsage=critical,keyCertSign")
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1")


@contextmanager
def certificates() -> Iterator[Path]:
    """A folder with authority.pem, server.pem (for `localhost`), client.pem and stranger.pem, each with its key."""
    folder = processes.make_folder("certificates")
    try:
        _request(folder, "authority", "-subj", "/CN=authority", *_SIGNS)
        _request(folder, "other", "-subj", "/CN=other authority", *_SIGNS)
        _signed(folder, "server", "authority", "-addext", "subjectAltName=DNS:localhost")
        _signed(folder, "client", "authority")
        _signed(folder, "stranger", "other")
        yield folder
    finally:
        processes.remove_folder(folder)


def encrypt_key(folder: Path, name: str) -> Path:
    """Write NAME.encrypted.key: the key with a passphrase."""
    encrypted = folder / f"{name}.encrypted.key"
    openssl = available(debian.OPENSSL.path)
    options = ("pkey", "-in", f"{name}.key", "-aes256", "-passout", "pass:canary", "-out", encrypted.name)
    processes.run([openssl, *options], folder=folder)
    return encrypted


def _signed(folder: Path, name: str, authority: str, *more: str) -> None:
    signed = ("-CA", f"{authority}.pem", "-CAkey", f"{authority}.key")
    _request(folder, name, "-subj", f"/CN={name}", "-addext", "basicConstraints=CA:FALSE", *signed, *more)


def _request(folder: Path, name: str, *arguments: str) -> None:
    openssl = available(debian.OPENSSL.path)
    files = ("-keyout", f"{name}.key", "-out", f"{name}.pem")
    processes.run([openssl, "req", "-x509", *_NEW_KEY, *arguments, *files], folder=folder)
