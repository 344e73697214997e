"""`pillarbox replay`: count, confirmation, interruption, resume."""

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from pillarbox.core.event import Event
from pillarbox.core.outcome import DELIVERED
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import environment, pillarbox
from tests.integration.cli.terminal import at_terminal
from tests.servers.waiting import wait_until

NAMES = [f"evt{number}" for number in range(5)]


def history(stock: Stock) -> Stock:
    stock.record(*(Event("order.placed", {"n": name}, event_id=name, key="k") for name in NAMES))
    stock.settle(**dict.fromkeys(NAMES, (DELIVERED, "orders")))
    return stock


@pytest.fixture
def delivered(stock: Stock) -> Stock:
    """Five delivered events of one key, on each engine."""
    return history(stock)


@pytest.fixture
def past(sqlite_url: str) -> Stock:
    """The same on SQLite, for tests that do not depend on the engine."""
    return history(Stock(sqlite_url))


def json_of(stock: Stock, *arguments: str) -> dict[str, Any]:
    done = pillarbox("replay", *arguments, "--json", PILLARBOX_STORE=stock.url)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def copies(stock: Stock) -> list[tuple[str, str]]:
    """The pending messages in order: event and destination."""
    rows = stock.ask("SELECT headers, destination FROM outbox_message ORDER BY id")
    return [((row if isinstance(row, dict) else json.loads(row))["replayof"], where) for row, where in rows]


def test_a_dry_run_only_counts(delivered: Stock) -> None:
    answer = json_of(delivered, "--type", "order.placed", "--since", "1h", "--dry-run")
    assert answer == {"matched": 5, "exact": True, "copied": 0, "replay": None, "dry_run": True}
    assert copies(delivered) == []
    assert delivered.ask("SELECT what FROM outbox_audit") == []


def test_delivered_events_are_replayed_in_order(delivered: Stock) -> None:
    answer = json_of(delivered, "--key", "k", "--yes")
    assert (answer["matched"], answer["copied"]) == (5, 5)
    assert copies(delivered) == [(name, "orders") for name in NAMES]
    assert delivered.ask("SELECT what, count FROM outbox_audit") == [("replay", 5)]


def test_a_replay_can_have_one_destination_and_a_limit(past: Stock) -> None:
    assert json_of(past, "--all", "--to", "audit", "--limit", "2", "--yes")["copied"] == 2
    assert copies(past) == [("evt0", "audit"), ("evt1", "audit")]


def test_a_replay_by_id_needs_no_confirmation(past: Stock) -> None:
    assert json_of(past, "evt3", "evt1")["copied"] == 2
    assert copies(past) == [("evt1", "orders"), ("evt3", "orders")]


@pytest.mark.parametrize(("typed", "code", "count"), [("y\n", 0, 5), ("n\n", 1, 0)])
def test_on_a_terminal_the_count_must_be_confirmed(past: Stock, typed: str, code: int, count: int) -> None:
    shown = at_terminal("replay", "--all", typed=typed, PILLARBOX_STORE=past.url)
    assert "Replay 5 deliveries, each to its destination?" in shown.screen
    assert (shown.returncode, len(copies(past))) == (code, count), shown.screen


def test_contradictory_options_are_rejected(past: Stock) -> None:
    nothing = pillarbox("replay", "--type", "another", "--yes", PILLARBOX_STORE=past.url)
    assert (nothing.returncode, nothing.stdout) == (0, "no matching events in the history\n")
    assert pillarbox("replay", "unknown", PILLARBOX_STORE=past.url).returncode == 4
    assert pillarbox("replay", "--resume", "4711", PILLARBOX_STORE=past.url).returncode == 4
    assert past.ask("SELECT what FROM outbox_audit") == []


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--all"],
        ["--all", "--key", "k", "--yes"],
        ["--all", "--rate", "0/s", "--yes"],
        ["--all", "--rate", "fast", "--yes"],
        ["--since", "1h", "--until", "2h", "--yes"],
        ["--resume", "1", "--all"],
        ["--resume", "1", "--dry-run"],
    ],
    ids=" ".join,
)
def test_a_selection_is_required(past: Stock, arguments: list[str]) -> None:
    assert pillarbox("replay", *arguments, PILLARBOX_STORE=past.url).returncode == 2
    assert copies(past) == []


def test_an_unknown_destination_is_rejected(past: Stock) -> None:
    done = pillarbox(
        "replay", "--all", "--to", "oders", "--yes",
        PILLARBOX_STORE=past.url,
        PILLARBOX_TRANSPORTS__C__URL="stdout://",
        PILLARBOX_DESTINATIONS__ORDERS__TRANSPORT="c",
    )  # fmt: skip
    assert (done.returncode, "orders" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("ended_by", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)], ids=["interrupted", "killed"]
)
def test_an_interrupted_replay_can_be_resumed(delivered: Stock, ended_by: signal.Signals, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pillarbox", "replay", "--all", "--yes", "--rate", "2/s"],
        env=environment({"PILLARBOX_STORE": delivered.url}),
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        wait_until(lambda: len(copies(delivered)) >= 2, bound=90, what="two are copied")
        process.send_signal(ended_by)
        _, said = process.communicate(timeout=120)
    [(number, count)] = delivered.ask("SELECT audit_id, count FROM outbox_audit")
    assert (process.returncode, count) == (code, len(copies(delivered)))
    assert count < len(NAMES)
    assert ended_by is signal.SIGKILL or f"--resume {number}" in said
    answer = json_of(delivered, "--resume", str(number), "--rate", "1000/s")
    assert (answer["copied"], answer["replay"]) == (5, number)
    assert copies(delivered) == [(name, "orders") for name in NAMES]
    assert json_of(delivered, "--resume", str(number))["copied"] == 5
    assert len(copies(delivered)) == 5
