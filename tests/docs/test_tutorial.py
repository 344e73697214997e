"""The tutorial works as typed: line by line, in an empty home folder, with nothing but the package installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.docs.walkthrough import Reader, environment
from tests.integration.rabbitmq.consumer import channel
from tests.servers.rabbitmq import RabbitMQServer

TUTORIAL = ROOT / "docs/tutorial"
# The package is in the environment of the tests: pip finds it by its name and builds nothing.
INSTALLED = {"/path/to/the/clone": "pillarbox"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder after the first part."""
    home = tmp_path_factory.mktemp("home")
    Reader(home, environment(home), instead=INSTALLED).follow(TUTORIAL / "first-outbox.md")
    return home


def test_the_first_outbox_is_built_as_the_page_says(home: Path) -> None:
    assert (home / "shop/shop.db").exists()


def test_the_second_service_is_built_as_the_page_says(home: Path, rabbitmq_server: RabbitMQServer) -> None:
    url = rabbitmq_server.url("")
    try:
        instead = INSTALLED | {"amqp://guest:guest@127.0.0.1:5672/": url}
        Reader(home, environment(home), instead=instead).follow(TUTORIAL / "second-service.md")
    finally:
        with channel(url) as broker:
            broker.queue_delete("billing")
            broker.exchange_delete("shop")
