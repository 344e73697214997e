"""The page on erasing personal data works as typed, with a running relay."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from pillarbox import Event
from pillarbox.core.outcome import Retry
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

[destinations.crm]

[[routes]]
to = ["crm"]
"""


def changed(event_id: str) -> Event:
    return Event("customer.changed", {}, event_id=event_id, aggregate_type="CUSTOMER", aggregate_id="42")


def test_the_page_works_as_typed(tmp_path: Path) -> None:
    (tmp_path / "pillarbox.toml").write_text(SETTINGS)
    archived = [
        {"event_id": str(number), "aggregate_type": "CUSTOMER", "aggregate_id": str(number)} for number in (7, 8)
    ]
    (tmp_path / "old.ndjson").write_text("".join(json.dumps(one) + "\n" for one in archived))
    stock = Stock(f"sqlite:///{tmp_path / 'shop.db'}")
    stock.run(lambda store: store.schema.apply())
    stock.record(changed("later"))
    stock.settle(later=(Retry(delay=3600, error="the crm is closed"), "crm"))
    stock.record(Event("customer.changed", {}, event_id="sent", key="s", aggregate_type="CUSTOMER", aggregate_id="42"))
    with subprocess.Popen(
        ["pillarbox", "relay"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as relay:
        try:
            wait_until(lambda: stock.states("sent") == ["PUBLISHED"], bound=90, what="the relay is at work")
            Reader(tmp_path, environment(tmp_path), instead={}).follow(ROOT / "docs/how-to/erase-personal-data.md")
        finally:
            relay.kill()
    assert stock.states("later", "sent") == ["", ""]
    assert [json.loads(line)["event_id"] for line in (tmp_path / "old.ndjson").read_text().splitlines()] == ["8"]
