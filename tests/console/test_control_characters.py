"""Control characters of an event reach neither a terminal nor a browser."""

from pathlib import Path

import pytest

from pillarbox.core.event import Event
from pillarbox.core.outcome import Dead
from pillarbox.core.text import UNSAFE
from tests.console.conftest import Visit
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox

OBEYED = "\x1b\x85\x9b\u061c\u200b\u202e\u2066\U000e0041"
COMMANDS = [
    ("events", "list"),
    ("events", "show", "rejected"),
    ("dead", "list"),
    ("dead", "groups"),
    ("dead", "show", "rejected"),
]
PAGES = ["/events", "/event?id=rejected", "/dead", "/dead?view=list", "/dead/export"]
API = ["events", "event?id=rejected", "dead", "dead/groups"]


@pytest.fixture
def stock_with_controls(sqlite_url: str) -> Stock:
    stock = Stock(sqlite_url)
    stock.record(Event("order.placed", {"said": OBEYED}, event_id="rejected", headers={"said": "a\u202eb"}))
    stock.settle(rejected=(Dead(error=f"refused {OBEYED}"), "orders"))
    return stock


def obeyed(text: str) -> str | None:
    found = UNSAFE.search(text.replace("\n", "").replace("\t", ""))
    return None if found is None else repr(found[0])


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_control_characters(
    stock_with_controls: Stock, command: tuple[str, ...], form: list[str]
) -> None:
    done = pillarbox(*command, *form, PILLARBOX_STORE=stock_with_controls.url)
    assert (done.returncode, obeyed(done.stdout)) == (0, None)
    assert "rejected" in done.stdout


def test_no_export_contains_control_characters(stock_with_controls: Stock, tmp_path: Path) -> None:
    lines = pillarbox("dead", "export", PILLARBOX_STORE=stock_with_controls.url).stdout
    archive = tmp_path / "old.ndjson"
    done = pillarbox(
        "prune", "--dead", "0s", "--archive", str(archive), "--yes", PILLARBOX_STORE=stock_with_controls.url
    )
    assert done.returncode == 0, done.stderr
    for text in (lines, archive.read_text()):
        assert ("refused" in text, obeyed(text)) == (True, None)


@pytest.mark.parametrize("path", [*PAGES, *(f"/api/v1/{name}" for name in API)])
async def test_no_page_and_no_response_contains_control_characters(
    visit: Visit, stock_with_controls: Stock, path: str
) -> None:
    text = await (await visit(stock_with_controls)).page_text(path)
    assert ("refused" in text, obeyed(text)) == (True, None)
