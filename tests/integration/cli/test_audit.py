"""`pillarbox audit list`, as text and as JSON."""

import getpass
import json
from typing import Any

import pytest

from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox


def json_of(stock: Stock, *arguments: str) -> dict[str, Any]:
    done = pillarbox("audit", "list", *arguments, "--json", PILLARBOX_STORE=stock.url)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def did(stock: Stock) -> None:
    for arguments in (["dead", "retry", "dead1"], ["dead", "discard", "dead2", "--yes"], ["replay", "sent"]):
        done = pillarbox(*arguments, PILLARBOX_STORE=stock.url)
        assert done.returncode == 0, done.stderr


def test_entries_are_listed_newest_first(with_dead_letters: Stock) -> None:
    did(with_dead_letters)
    entries = json_of(with_dead_letters)["audit"]
    assert [(entry["what"], entry["subject"], entry["count"]) for entry in entries] == [
        ("replay", "", 1),
        ("discard", "dead2", 1),
        ("retry", "dead1", 1),
    ]
    assert {entry["who"] for entry in entries} == {getpass.getuser()}
    assert entries[1]["detail"]["destination"] == "mail"
    assert sorted(entries[0]) == ["at", "count", "detail", "number", "subject", "what", "who"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--what", "discard"], ["dead2"]),
        (["--who", "carol"], []),
        (["--since", "1h", "--what", "retry"], ["dead1"]),
        (["--since", "2999-01-01T00:00:00Z"], []),
    ],
)
def test_entries_can_be_filtered(shop: Stock, arguments: list[str], found: list[str]) -> None:
    did(shop)
    assert [entry["subject"] for entry in json_of(shop, *arguments)["audit"]] == found


def test_pages_continue_after_a_number(shop: Stock) -> None:
    did(shop)
    first = json_of(shop, "--limit", "2")
    second = json_of(shop, "--limit", "2", "--after", str(first["after"]))
    assert [entry["what"] for entry in (*first["audit"], *second["audit"])] == ["replay", "discard", "retry"]
    assert second["after"] is None


def test_a_pipe_gets_one_line_per_entry(shop: Stock) -> None:
    nothing = pillarbox("audit", "list", PILLARBOX_STORE=shop.url)
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "no matching entries\n")
    did(shop)
    lines = pillarbox("audit", "list", PILLARBOX_STORE=shop.url).stdout.splitlines()
    assert lines[0].split("\t") == ["number", "at", "who", "what", "subject", "count", "detail"]
    assert len(lines) == 4
