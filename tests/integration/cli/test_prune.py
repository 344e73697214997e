"""`pillarbox prune` deletes expired data, and archives it first on request."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox
from tests.integration.cli.terminal import at_terminal

EVERYTHING = ("--history", "0s", "--dead", "0s")


def json_of(stock: Stock, *arguments: str) -> dict[str, Any]:
    done = pillarbox("prune", *arguments, "--json", PILLARBOX_STORE=stock.url)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_nothing_is_expired_by_default(with_dead_letters: Stock) -> None:
    done = pillarbox("prune", PILLARBOX_STORE=with_dead_letters.url)
    assert (done.returncode, done.stdout) == (0, "no data is past its retention period\n")


def test_a_dry_run_only_counts(with_dead_letters: Stock) -> None:
    done = pillarbox("prune", *EVERYTHING, "--dry-run", PILLARBOX_STORE=with_dead_letters.url)
    assert (done.returncode, done.stdout) == (0, "would delete 1 delivered event and 2 dead letters\n")
    assert with_dead_letters.states("sent", "dead1", "dead2") == ["PUBLISHED", "FAILED", "FAILED"]


def test_expired_data_is_deleted_and_pending_events_stay(with_dead_letters: Stock) -> None:
    assert json_of(with_dead_letters, *EVERYTHING, "--yes") == {
        "history": 1,
        "dead": 2,
        "inbox": 0,
        "ledger": 0,
        "audit": 0,
        "deleted": True,
        "dry_run": False,
    }
    assert with_dead_letters.states("sent", "dead1", "dead2", "stuck", "fresh") == ["", "", "", "FAILED", "PENDING"]


def test_forever_keeps_everything(with_dead_letters: Stock) -> None:
    assert json_of(with_dead_letters, "--history", "0s", "--dead", "forever", "--yes")["dead"] == 0
    assert with_dead_letters.states("sent", "dead1", "dead2") == ["", "FAILED", "FAILED"]


def test_without_a_terminal_yes_is_required(shop: Stock) -> None:
    done = pillarbox("prune", *EVERYTHING, PILLARBOX_STORE=shop.url)
    assert (done.returncode, "--yes" in done.stderr) == (2, True)
    assert shop.states("sent") == ["PUBLISHED"]


def test_on_a_terminal_the_count_must_be_confirmed(shop: Stock) -> None:
    shown = at_terminal("prune", *EVERYTHING, typed="n\n", PILLARBOX_STORE=shop.url)
    assert (shown.returncode, "Delete 1 delivered event and 2 dead letters?" in shown.screen) == (1, True)
    assert shop.states("sent") == ["PUBLISHED"]


@pytest.mark.parametrize("name", ["old.ndjson", "old.ndjson.gz"])
def test_every_deleted_row_is_in_the_archive(with_dead_letters: Stock, tmp_path: Path, name: str) -> None:
    archive = tmp_path / name
    before = json.loads(pillarbox("events", "show", "sent", "--json", PILLARBOX_STORE=with_dead_letters.url).stdout)
    json_of(with_dead_letters, *EVERYTHING, "--archive", str(archive), "--yes")
    content = archive.read_bytes()
    rows = [json.loads(row) for row in (gzip.decompress(content) if name.endswith(".gz") else content).splitlines()]
    assert [(row["event_id"], row["status"]) for row in rows] == [
        ("sent", "PUBLISHED"),
        ("dead1", "FAILED"),
        ("dead2", "FAILED"),
    ]
    assert rows[0] == before["events"][0]
    assert with_dead_letters.states("sent", "dead1", "dead2", "stuck", "fresh") == ["", "", "", "FAILED", "PENDING"]


def test_an_archive_is_never_overwritten(shop: Stock, tmp_path: Path) -> None:
    archive = tmp_path / "old.ndjson"
    archive.write_text("precious\n")
    done = pillarbox("prune", *EVERYTHING, "--archive", str(archive), "--yes", PILLARBOX_STORE=shop.url)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert archive.read_text() == "precious\n"
    assert shop.states("sent") == ["PUBLISHED"]


def test_an_archive_that_cannot_be_created_is_a_usage_error(shop: Stock, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "no" / "such" / "folder.ndjson")
    done = pillarbox("prune", *EVERYTHING, "--archive", nowhere, "--yes", PILLARBOX_STORE=shop.url)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert shop.states("sent") == ["PUBLISHED"]
