"""`pillarbox events`, as text and as JSON."""

import json
import re

import pytest

from pillarbox.admin.admin import AdminStore
from pillarbox.core.event import Event
from pillarbox.core.outcome import DELIVERED, Outcome, Retry
from pillarbox.testing.conformance.lane_owner import Owner
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox
from tests.integration.cli.terminal import at_terminal


def listed(stock: Stock, *options: str) -> list[str]:
    done = pillarbox("events", "list", "--json", *options, PILLARBOX_STORE=stock.url)
    assert done.returncode == 0, done.stderr
    return [event["event_id"] for event in json.loads(done.stdout)["events"]]


def sent(stock: Stock, outcome: Outcome, *, seconds: float) -> None:
    """Settle all pending events to `orders` with this duration."""

    async def work(store: AdminStore) -> None:
        owner = await Owner.of(store)
        await owner.settle(outcome, *await owner.ready(), to="orders", seconds=seconds)

    stock.run(work)


def test_the_list_covers_all_tables(with_dead_letters: Stock) -> None:
    assert listed(with_dead_letters) == ["fresh", "sent", "stuck", "dead2", "dead1"]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--status", "FAILED"], ["stuck", "dead2", "dead1"]),
        (["--status", "published"], ["sent"]),
        (["--key", "k"], ["dead2", "dead1"]),
        (["--type", "another"], []),
        (["--destination", "mail"], ["dead2"]),
        (["--state", "retrying"], []),
        (["--since", "1h", "--limit", "1"], ["fresh"]),
        (["--since", "2100-01-01T00:00:00Z"], []),
    ],
)
def test_events_can_be_filtered(shop: Stock, options: list[str], found: list[str]) -> None:
    assert listed(shop, *options) == found


def test_pages_continue_after_a_cursor(shop: Stock) -> None:
    found: list[str] = []
    cursor: list[str] = []
    while True:
        done = pillarbox("events", "list", "--json", "--limit", "2", *cursor, PILLARBOX_STORE=shop.url)
        page = json.loads(done.stdout)
        found += [event["event_id"] for event in page["events"]]
        if page["after"] is None:
            break
        cursor = ["--after", page["after"]]
    assert found == ["fresh", "sent", "stuck", "dead2", "dead1"]


def test_a_pipe_gets_tabs_without_colours(shop: Stock) -> None:
    done = pillarbox("events", "list", "--limit", "1", PILLARBOX_STORE=shop.url)
    names, row = done.stdout.splitlines()
    assert names.split("\t")[:3] == ["recorded", "event", "type"]
    assert row.split("\t")[1:3] == ["fresh", "order.placed"]
    assert "\x1b" not in done.stdout
    assert "--after" in done.stderr


def test_a_terminal_gets_a_table_with_colours(shop: Stock) -> None:
    shown = at_terminal("events", "list", PILLARBOX_STORE=shop.url)
    assert (shown.returncode, "\x1b[31mdead-lettered" in shown.screen) == (0, True), shown.screen
    assert "─" in shown.screen


def test_a_narrow_terminal_gets_a_block_per_event(sqlite_url: str) -> None:
    stock = Stock(sqlite_url)
    event = Event("order.placed", {})
    stock.record(event)
    shown = at_terminal("events", "list", PILLARBOX_STORE=stock.url, COLUMNS="60").screen
    lines = [line.split() for line in re.sub(r"\x1b\[\d*m", "", shown).splitlines()]
    assert [name for name, *_ in lines] == ["recorded", "event", "type", "state", "retries"]
    assert lines[1] == ["event", event.event_id]


def test_control_characters_of_an_event_are_escaped(sqlite_url: str) -> None:
    stock = Stock(sqlite_url)
    stock.record(Event("[red]order", {}, event_id="a"))
    stock.settle(a=(Retry(delay=3600, error="no\nsuch\tthing \u202e[bold]"), "orders"))
    piped = pillarbox("events", "list", PILLARBOX_STORE=stock.url).stdout
    assert len(piped.splitlines()) == 2
    assert "no\\nsuch\\tthing \\u202e[bold]" in piped
    shown = at_terminal("events", "list", PILLARBOX_STORE=stock.url).screen
    assert "[red]order" in shown
    assert "\u202e" not in shown


def test_show_prints_every_field(stock: Stock) -> None:
    recorded = pillarbox(
        "record", "order.placed", '{"id": 42}', "--id", "a", "--aggregate-type", "ORDER", "--aggregate-id", "42",
        "--header", "tenant=acme", PILLARBOX_STORE=stock.url,
    )  # fmt: skip
    assert recorded.stdout == "a\n"
    sent(stock, Retry(delay=3600, error="refused"), seconds=0.012)
    story = json.loads(pillarbox("events", "show", "a", "--json", PILLARBOX_STORE=stock.url).stdout)
    [event] = story["events"]
    assert (event["payload"], event["headers"], event["key"]) == ({"id": 42}, {"tenant": "acme"}, "ORDER:42")
    assert (event["status"], event["destination"], event["attempts"]) == ("PENDING", "orders", 1)
    [failure] = story["failures"]
    assert (failure["error"], failure["counted"], failure["destination"]) == ("refused", True, "orders")
    assert (event["seconds"], failure["seconds"]) == (None, 0.012)
    shown = pillarbox("events", "show", "a", PILLARBOX_STORE=stock.url).stdout
    assert "payload" in shown
    assert '{"id":42}' in shown
    assert "header tenant" in shown
    assert "\tyes\t12 ms\trefused" in shown


def test_a_delivery_has_its_duration(stock: Stock) -> None:
    stock.record(Event("order.placed", {}, event_id="a"))
    sent(stock, DELIVERED, seconds=0.0034)
    [event] = json.loads(pillarbox("events", "show", "a", "--json", PILLARBOX_STORE=stock.url).stdout)["events"]
    assert event["seconds"] == 0.0034
    shown = pillarbox("events", "show", "a", PILLARBOX_STORE=stock.url).stdout
    assert re.search("^delivered in +3.4 ms$", shown, re.MULTILINE)


def test_an_unknown_event_is_not_found(sqlite_url: str) -> None:
    done = pillarbox("events", "show", "nothing", PILLARBOX_STORE=sqlite_url)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (4, "", 1)


@pytest.mark.parametrize(
    "options",
    [["--status", "LOST"], ["--since", "yesterday"], ["--after", "7"], ["--limit", "0"]],
)
def test_invalid_options_are_a_usage_error(options: list[str]) -> None:
    assert pillarbox("events", "list", *options).returncode == 2


def test_a_memory_store_is_rejected() -> None:
    done = pillarbox("events", "list", PILLARBOX_STORE="memory://")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "exists only in the process that opened it" in done.stderr
