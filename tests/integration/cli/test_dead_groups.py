"""`pillarbox dead groups`, and decisions about a whole group."""

import json
from typing import Any

import pytest

from pillarbox.core.event import Event
from pillarbox.core.outcome import Dead
from pillarbox.ops.dead_letter_groups import fingerprint
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox

GONE = fingerprint("order.placed", "orders", "order 0 is gone")


@pytest.fixture
def stock_with_dead_letters(stock: Stock) -> Stock:
    """Three orders that are gone, one that was refused."""
    errors = {"a": "order 1 is gone", "b": "refused", "c": "order 2 is gone", "d": "order 3 is gone"}
    stock.record(*(Event("order.placed", {}, event_id=name, key="k") for name in errors))
    stock.settle(**{name: (Dead(error=error), "orders") for name, error in errors.items()})
    return stock


def json_of(stock: Stock, *arguments: str) -> dict[str, Any]:
    done = pillarbox("dead", *arguments, "--json", PILLARBOX_STORE=stock.url)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_dead_letters_are_grouped_by_error(stock_with_dead_letters: Stock) -> None:
    answer = json_of(stock_with_dead_letters, "groups")
    assert [(group["reason"], group["count"]) for group in answer["groups"]] == [
        ("order <n> is gone", 3),
        ("refused", 1),
    ]
    first = answer["groups"][0]
    assert (first["group"], first["event_type"], first["destination"]) == (GONE, "order.placed", "orders")
    assert (first["example"]["event_id"], answer["complete"]) == ("d", True)


def test_groups_in_a_pipe_have_one_line_each(stock_with_dead_letters: Stock) -> None:
    done = pillarbox("dead", "groups", "--limit", "1", PILLARBOX_STORE=stock_with_dead_letters.url)
    names, line = done.stdout.splitlines()
    assert names.split("\t")[:2] == ["group", "count"]
    assert line.split("\t")[:2] == [GONE, "3"]
    assert done.stderr == "1 more groups: --limit\n"


def test_a_group_is_retried_in_order(stock_with_dead_letters: Stock) -> None:
    answer = json_of(stock_with_dead_letters, "retry", "--group", GONE, "--yes")
    assert answer == {"matched": 3, "done": 3, "requested": 0, "dry_run": False}
    assert stock_with_dead_letters.states("a", "b", "c", "d") == ["PENDING", "FAILED", "PENDING", "PENDING"]
    assert stock_with_dead_letters.ask("SELECT event_id FROM outbox_message ORDER BY id") == [("a",), ("c",), ("d",)]


def test_a_group_is_discarded(stock_with_dead_letters: Stock) -> None:
    assert json_of(stock_with_dead_letters, "discard", "--group", GONE, "--yes")["done"] == 3
    assert stock_with_dead_letters.states("a", "b", "c", "d") == ["", "FAILED", "", ""]


def test_a_group_can_be_filtered_in_a_dry_run(stock_with_dead_letters: Stock) -> None:
    assert json_of(stock_with_dead_letters, "retry", "--group", GONE, "--error", "order 2", "--dry-run")["matched"] == 1
    assert json_of(stock_with_dead_letters, "discard", "--group", GONE, "--dry-run")["matched"] == 3
    assert stock_with_dead_letters.states("a", "c", "d") == ["FAILED"] * 3


def test_the_count_of_a_group_must_be_confirmed(stock_with_dead_letters: Stock) -> None:
    done = pillarbox("dead", "retry", "--group", GONE, PILLARBOX_STORE=stock_with_dead_letters.url)
    assert (done.returncode, "Retry 3 dead letters?" in done.stderr) == (2, True)


def test_a_blocked_event_is_in_no_group(shop: Stock) -> None:
    refused = fingerprint("order.placed", "orders", "refused")
    assert json_of(shop, "retry", "--group", refused, "--yes") == {
        "matched": 1,
        "done": 1,
        "requested": 0,
        "dry_run": False,
    }


def test_an_unknown_group_is_not_found(shop: Stock) -> None:
    done = pillarbox("dead", "retry", "--group", "0" * 12, "--yes", PILLARBOX_STORE=shop.url)
    assert (done.returncode, "dead groups" in done.stderr) == (4, True)


@pytest.mark.parametrize("arguments", [["--group", "nonsense"], ["--group", GONE, "--all"]])
def test_contradictory_options_are_rejected(shop: Stock, arguments: list[str]) -> None:
    assert pillarbox("dead", "discard", *arguments, "--yes", PILLARBOX_STORE=shop.url).returncode == 2


def test_an_empty_list_of_groups_succeeds(shop: Stock) -> None:
    done = pillarbox("dead", "groups", "--type", "another", PILLARBOX_STORE=shop.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no matching dead letters\n")
