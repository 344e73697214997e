"""The page on the control of destinations works as typed, with a running relay."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from pillarbox import Event
from pillarbox.core.outcome import Dead
from tests.docs.pages import ROOT
from tests.docs.walkthrough import Reader, environment
from tests.integration.cli.conftest import Stock
from tests.servers.waiting import wait_until

SETTINGS = """
[store]
url = "sqlite:///shop.db"

[relay]
heartbeat_interval = "500ms"

[transports.out]
url = "stdout://"

[destinations.mailer]
[destinations.partner]

[[routes]]
to = ["partner"]
"""


class Shop(NamedTuple):
    home: Path
    relay: subprocess.Popen[bytes]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A folder with settings, a store with a blocked key, and a relay that has sent an event."""
    (tmp_path / "pillarbox.toml").write_text(SETTINGS)
    stock = Stock(f"sqlite:///{tmp_path / 'shop.db'}")
    stock.run(lambda store: store.schema.apply())
    stock.record(Event("order.placed", {}, event_id="evt-42", key="ORDER:42"))
    stock.settle(**{"evt-42": (Dead(error="no such customer", block=True), "mailer")})
    stock.record(Event("order.placed", {}, event_id="evt-43"))
    command = ["pillarbox", "relay", "--name", "relay-a"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as relay:
        try:
            wait_until(lambda: stock.states("evt-43") == ["PUBLISHED"], bound=90, what="the relay is at work")
            yield Shop(tmp_path, relay)
        finally:
            relay.kill()


def test_the_page_works_as_typed(shop: Shop) -> None:
    Reader(shop.home, environment(shop.home), instead={}).follow(ROOT / "docs/how-to/control-destinations.md")
    assert shop.relay.wait(timeout=120) == 0  # the page drains it
