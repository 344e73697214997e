"""Bulk actions of operators: each is one audit entry."""

import getpass
import json
from typing import Any

import pytest

from pillarbox import Event
from pillarbox.ops.dead_letter_groups import fingerprint
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox

NO_RELAY = "no relay is running"


def did(stock: Stock, *arguments: str) -> str:
    done = pillarbox(*arguments, PILLARBOX_STORE=stock.url)
    assert done.returncode == 0, done.stderr
    return done.stderr


def audited(stock: Stock) -> list[dict[str, Any]]:
    done = pillarbox("audit", "list", "--json", PILLARBOX_STORE=stock.url)
    entries: list[dict[str, Any]] = json.loads(done.stdout)["audit"]
    assert {entry["who"] for entry in entries} == {getpass.getuser()}
    return [{name: entry[name] for name in ("what", "subject", "count", "detail")} for entry in entries]


def test_a_bulk_action_is_one_audit_entry_that_relays_update(with_dead_letters: Stock) -> None:
    assert NO_RELAY in did(with_dead_letters, "dead", "discard", "--type", "order.placed", "--yes")
    entry = {"what": "discard", "subject": "type order.placed", "count": 2, "detail": {"remaining": 1}}
    assert audited(with_dead_letters) == [entry]
    relay = pillarbox("relay", "--until-empty", PILLARBOX_STORE=with_dead_letters.url, PILLARBOX_TRANSPORT="stdout://")
    assert relay.returncode == 0, relay.stderr
    assert with_dead_letters.states("stuck") == [""]
    assert audited(with_dead_letters) == [entry | {"count": 3, "detail": {"remaining": 0}}]


def test_a_bulk_request_for_pending_events_is_one_entry(with_dead_letters: Stock) -> None:
    with_dead_letters.record(Event("order.placed", {}, event_id="other"))
    assert NO_RELAY in did(with_dead_letters, "events", "reschedule", "fresh", "other", "--in", "1h")
    entry = {"what": "reschedule", "subject": "2 events", "count": 0}
    detail = {"delay": 3600, "event_ids": ["fresh", "other"]}
    assert audited(with_dead_letters) == [entry | {"detail": {"remaining": 2, **detail}}]
    relay = pillarbox("relay", "--until-empty", PILLARBOX_STORE=with_dead_letters.url, PILLARBOX_TRANSPORT="stdout://")
    assert relay.returncode == 0, relay.stderr
    assert audited(with_dead_letters) == [entry | {"count": 2, "detail": {"remaining": 0, **detail}}]


GROUP = fingerprint("t", "mail", "refused")


@pytest.mark.parametrize(
    ("arguments", "subject"),
    [
        (["--all"], "everything"),
        (["--group", GROUP], GROUP),
        (["--key", "k", "--error", "refused"], "key k, error refused"),
        (["dead1"], "dead1"),
    ],
)
def test_an_entry_has_the_filter(shop: Stock, arguments: list[str], subject: str) -> None:
    from pillarbox.core.outcome import Dead

    for name in ("g1", "g2"):
        shop.record(Event("t", {}, event_id=name, key="k"))
    shop.settle(g1=(Dead(error="refused"), "mail"), g2=(Dead(error="refused"), "mail"))
    did(shop, "dead", "discard", *arguments, "--yes")
    assert [entry["subject"] for entry in audited(shop)] == [subject]


def test_an_event_shows_its_open_requests(with_dead_letters: Stock) -> None:
    did(with_dead_letters, "events", "reschedule", "fresh", "--in", "90s")
    shown = pillarbox("events", "show", "fresh", PILLARBOX_STORE=with_dead_letters.url).stdout
    assert f"reschedule\t90.0 s\t{getpass.getuser()}" in shown
    [asked] = json.loads(pillarbox("events", "show", "fresh", "--json", PILLARBOX_STORE=with_dead_letters.url).stdout)[
        "requests"
    ]
    assert (asked["action"], asked["delay"], asked["requested_by"]) == ("reschedule", 90, getpass.getuser())
    pillarbox("relay", "--until-empty", PILLARBOX_STORE=with_dead_letters.url, PILLARBOX_TRANSPORT="stdout://")
    story = json.loads(pillarbox("events", "show", "fresh", "--json", PILLARBOX_STORE=with_dead_letters.url).stdout)
    assert story["requests"] == []


@pytest.mark.parametrize("number", [str(2**63), "99999999999999999999", "-1"])
@pytest.mark.parametrize(
    "arguments", [["dead", "list", "--after"], ["audit", "list", "--after"], ["replay", "--resume"]]
)
def test_a_number_out_of_range_is_rejected(shop: Stock, arguments: list[str], number: str) -> None:
    done = pillarbox(*arguments, number, PILLARBOX_STORE=shop.url)
    assert (done.returncode, f"Invalid value for '{arguments[-1]}'" in done.stderr) == (2, True), done.stderr


def test_a_position_out_of_range_is_rejected(shop: Stock) -> None:
    after = "2026-11-30T09:00:00+00:00,99999999999999999999,orders"
    done = pillarbox("events", "list", "--after", after, PILLARBOX_STORE=shop.url)
    assert (done.returncode, "is not a position in a list" in done.stderr) == (2, True), done.stderr
