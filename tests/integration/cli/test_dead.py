"""`pillarbox dead`, as text and as JSON."""

import json
from typing import Any

import pytest

from pillarbox.admin.admin import AdminStore
from pillarbox.core.lane import epochs_of
from pillarbox.testing.conformance.lane_owner import Owner
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox
from tests.integration.cli.terminal import at_terminal


def json_of(stock: Stock, *arguments: str) -> dict[str, Any]:
    done = pillarbox("dead", *arguments, "--json", PILLARBOX_STORE=stock.url)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def execute_requests(stock: Stock) -> int:
    """Apply operator requests like the owner of the lanes."""

    async def work(store: AdminStore) -> int:
        owner = await Owner.of(store)
        count = (await store.writes.execute_requests(epochs_of(owner.owned))).done
        await store.lanes.release(owner.relay)
        return count

    return stock.run(work)


def test_dead_letters_are_listed_newest_first(with_dead_letters: Stock) -> None:
    page = json_of(with_dead_letters, "list")
    assert [(x["event_id"], x["destination"], x["error"]) for x in page["dead_letters"]] == [
        ("dead2", "mail", "timeout of 30 s"),
        ("dead1", "orders", "refused"),
    ]
    assert page["after"] is None


def test_the_list_mentions_blocked_events(shop: Stock) -> None:
    done = pillarbox("dead", "list", PILLARBOX_STORE=shop.url)
    assert "`pillarbox keys groups` lists them" in done.stderr
    json_of(shop, "discard", "stuck", "--yes")
    execute_requests(shop)
    assert pillarbox("dead", "list", PILLARBOX_STORE=shop.url).stderr == ""


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--error", "timeout"], ["dead2"]),
        (["--destination", "orders"], ["dead1"]),
        (["--type", "another"], []),
        (["--key", "k", "--since", "1h"], ["dead2", "dead1"]),
        (["--limit", "1"], ["dead2"]),
    ],
)
def test_dead_letters_can_be_filtered(shop: Stock, options: list[str], found: list[str]) -> None:
    assert [x["event_id"] for x in json_of(shop, "list", *options)["dead_letters"]] == found


def test_pages_continue_after_a_number(shop: Stock) -> None:
    first = json_of(shop, "list", "--limit", "1")
    second = json_of(shop, "list", "--limit", "1", "--after", str(first["after"]))
    assert [x["event_id"] for x in second["dead_letters"]] == ["dead1"]


def test_show_prints_every_field(shop: Stock) -> None:
    [event] = json_of(shop, "show", "dead1")["events"]
    assert (event["status"], event["last_error"], event["payload"]) == ("FAILED", "refused", {})
    assert event["dead_lettered_at"] is not None
    missing = pillarbox("dead", "show", "sent", PILLARBOX_STORE=shop.url)
    assert missing.returncode == 4


def test_a_retry_by_id_makes_the_event_pending(with_dead_letters: Stock) -> None:
    assert json_of(with_dead_letters, "retry", "dead1") == {"matched": 1, "done": 1, "requested": 0, "dry_run": False}
    assert with_dead_letters.states("dead1", "dead2") == ["PENDING", "FAILED"]


def test_a_blocked_event_becomes_a_request_to_the_relay(with_dead_letters: Stock) -> None:
    assert json_of(with_dead_letters, "retry", "stuck") == {"matched": 1, "done": 0, "requested": 1, "dry_run": False}
    assert with_dead_letters.states("stuck") == ["FAILED"]
    assert execute_requests(with_dead_letters) == 1
    assert with_dead_letters.states("stuck") == ["PENDING"]


def test_matching_dead_letters_are_retried_in_order(with_dead_letters: Stock) -> None:
    assert json_of(with_dead_letters, "retry", "--key", "k", "--yes")["done"] == 2
    events = json.loads(
        pillarbox("events", "list", "--key", "k", "--json", PILLARBOX_STORE=with_dead_letters.url).stdout
    )
    assert {event["status"] for event in events["events"]} == {"PENDING"}

    async def ready(store: AdminStore) -> list[str]:
        owner = await Owner.of(store)
        return [message.event_id for message in await owner.ready() if message.key == "k"]

    assert with_dead_letters.run(ready) == ["dead1", "dead2"]


def test_all_selects_every_dead_letter(with_dead_letters: Stock) -> None:
    answer = json_of(with_dead_letters, "discard", "--all", "--yes")
    assert answer == {"matched": 3, "done": 2, "requested": 1, "dry_run": False}
    execute_requests(with_dead_letters)
    assert with_dead_letters.states("dead1", "dead2", "stuck", "sent", "fresh") == ["", "", "", "PUBLISHED", "PENDING"]


@pytest.mark.parametrize("verb", ["retry", "discard"])
def test_a_dry_run_counts_and_changes_nothing(shop: Stock, verb: str) -> None:
    done = pillarbox("dead", verb, "--all", "--dry-run", PILLARBOX_STORE=shop.url)
    assert (done.returncode, done.stdout) == (0, f"would {verb} 2 dead letters and 1 blocked event\n")
    assert shop.states("dead1", "dead2", "stuck") == ["FAILED"] * 3
    assert execute_requests(shop) == 0


@pytest.mark.parametrize("arguments", [["retry", "--all"], ["discard", "--type", "order.placed"], ["discard", "dead1"]])
def test_without_a_terminal_yes_is_required(shop: Stock, arguments: list[str]) -> None:
    done = pillarbox("dead", *arguments, PILLARBOX_STORE=shop.url)
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert shop.states("dead1", "dead2") == ["FAILED"] * 2


@pytest.mark.parametrize(("typed", "code", "states"), [("y\n", 0, ["", "FAILED"]), ("n\n", 1, ["FAILED", "FAILED"])])
def test_on_a_terminal_the_count_must_be_confirmed(shop: Stock, typed: str, code: int, states: list[str]) -> None:
    shown = at_terminal("dead", "discard", "--error", "timeout", typed=typed, PILLARBOX_STORE=shop.url)
    assert (shown.returncode, "Discard 1 dead letter?" in shown.screen) == (code, True), shown.screen
    assert shop.states("dead2", "dead1") == states


@pytest.mark.parametrize("arguments", [["retry"], ["discard", "--all", "--key", "k"], ["retry", "x", "--all"]])
def test_a_selection_is_required(arguments: list[str]) -> None:
    assert pillarbox("dead", *arguments).returncode == 2


def test_an_unknown_dead_letter_is_not_found(shop: Stock) -> None:
    done = pillarbox("dead", "retry", "sent", PILLARBOX_STORE=shop.url)
    assert (done.returncode, done.stderr.count("\n")) == (4, 1)
    nothing = pillarbox("dead", "retry", "--type", "another", PILLARBOX_STORE=shop.url)
    assert (nothing.returncode, nothing.stdout) == (0, "no matching dead letters\n")


def test_the_operator_is_audited(with_dead_letters: Stock) -> None:
    json_of(with_dead_letters, "retry", "dead1")
    assert with_dead_letters.ask("SELECT what, subject FROM outbox_audit") == [("retry", "dead1")]
