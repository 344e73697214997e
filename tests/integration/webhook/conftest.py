"""A receiver and transports to it; certificates of an authority of our own."""

import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pillarbox.transports.webhook import WebhookTransport
from tests.integration.webhook.receiver import Receiver
from tests.servers import debian, processes
from tests.servers.availability import available

LOOPBACK = ["127.0.0.0/8", "::1/128"]
MakeTransport = Callable[..., WebhookTransport]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as receiver:
        yield receiver


@pytest.fixture
async def make() -> AsyncIterator[MakeTransport]:
    """Makes transports that may send to loopback, and closes them."""
    made: list[WebhookTransport] = []

    def make_transport(url: str, **options: Any) -> WebhookTransport:
        made.append(WebhookTransport(url, **({"allow_networks": LOOPBACK} | options)))
        return made[-1]

    yield make_transport
    for one in made:
        await one.aclose()


@pytest.fixture(scope="session")
def certificates() -> Iterator[Path]:
    """An authority and, signed by it, certificates for `localhost`: one for a year, one for a day."""
    folder = processes.make_folder("webhook-certificates")
    openssl = available(debian.OPENSSL.path)

    def request(*arguments: str, days: int = 365) -> None:
        new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", str(days))
        processes.run([openssl, "req", "-x509", *new_key, *arguments], folder=folder)

    # From Python 3.13 on, the certificate of an authority must say what its key is for.
    signs = ("-addext", "keyUsage=critical,keyCertSign")
    request("-subj", "/CN=authority", *signs, "-keyout", "authority.key", "-out", "authority.pem")
    for name, days in (("year", 365), ("day", 1)):
        request(
            *("-subj", "/CN=receiver", "-addext", "subjectAltName=DNS:localhost"),
            *("-addext", "basicConstraints=CA:FALSE", "-CA", "authority.pem", "-CAkey", "authority.key"),
            *("-keyout", f"{name}.key", "-out", f"{name}.pem"),
            days=days,
        )
    yield folder
    processes.remove_folder(folder)


def server_context(certificates: Path, name: str = "year") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / f"{name}.pem", certificates / f"{name}.key")
    return context
