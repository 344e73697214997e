"""The shipped settings files use the default login of RabbitMQ: user guest, password guest, on loopback."""

from __future__ import annotations

import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pillarbox.transports.rabbitmq import RabbitMQTransport
from tests.servers.rabbitmq import RabbitMQServer

ROOT = Path(__file__).resolve().parents[2]
FILES = [*ROOT.glob("apps/*/pillarbox.toml"), *(ROOT / "docs" / "samples").glob("*.toml")]
URLS = [
    (file, transport["url"])
    for file in FILES
    for transport in tomllib.loads(file.read_text(encoding="utf-8")).get("transports", {}).values()
    if "url" in transport
]


def test_the_files_of_both_applications_are_tested() -> None:
    assert {file.parent.name for file, _ in URLS} >= {"ingestion", "notifications", "samples"}


@pytest.mark.parametrize(("file", "url"), URLS, ids=lambda value: value.stem if isinstance(value, Path) else "")
async def test_a_new_broker_accepts_the_login_of_a_shipped_file(
    file: Path, url: str, rabbitmq_server: RabbitMQServer
) -> None:
    parts = urlsplit(url)
    if parts.hostname not in ("127.0.0.1", "localhost"):
        pytest.fail(f"{file} names {parts.hostname}: the packaged guest may connect from the same machine only")
    here = urlsplit(rabbitmq_server.url())
    login = parts.netloc.rpartition("@")[0]
    broker = RabbitMQTransport(f"amqp://{login}@127.0.0.1:{here.port}{here.path}")
    try:
        await broker.ping()
    finally:
        await broker.aclose()
