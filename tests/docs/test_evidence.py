"""The page of evidence is what the generator makes of the raw reports, and says what they do not show."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import pytest

from pillarbox.ops.drill.recovery import percentile
from pillarbox.ops.drill.schedule import CRASHES, OUTAGES, schedule
from tests.docs.evidence import KILLS, PAGE, page, read_reports

REPORTS = read_reports()


@pytest.fixture
def report() -> dict[str, Any]:
    return {
        "conclusion": "passed",
        "violations": [],
        "seed": 7,
        "ended_at": "2026-11-30T09:00:00.000000Z",
        "pillarbox": "0.1.0",
        "python": "3.11.7",
        "store": "postgresql",
        "store_version": "15.20 (Debian)",
        "transport": "rabbitmq",
        "options": {"relays": 3, "rate": 300.0},
        "seconds": 60.0,
        "committed": 1_999_999,
        "rolled_back": 5,
        "unknown_outcomes": 0,
        "lost": 0,
        "phantom": 0,
        "order_violations": None,
        "wrong_effects": 0,
        "stale_settlements": 0,
        "stuck": 0,
        "dead_letters": 0,
        "duplicates": 60,
        "duplicates_per_crash": 4.29,
        "max_duplicates_per_crash": 200,
        "faults": {
            "kill": {"executed": 2_500, "effective": 2_390},
            "kill-consumer": {"executed": 10, "effective": 10},
        },
        "recovery": {"kill": {"count": 2_400, "p50": 0.5, "p99": 1.25, "max": 2.0}},
        "schedule": [
            {"kind": "kill", "recovery": 2.0},
            {"kind": "cut-broker", "recovery": 1.0},
            {"kind": "cut-database", "recovery": 3.0},
        ],
    }


def test_the_page_is_what_the_reports_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(REPORTS)


def test_no_committed_run_is_void_or_failed() -> None:
    assert {name: one["conclusion"] for name, one in REPORTS.items() if one["conclusion"] != "passed"} == {}


@pytest.mark.parametrize("name", REPORTS)
def test_the_numbers_of_a_committed_report_add_up(name: str) -> None:
    one = REPORTS[name]
    schedule, limit = one["schedule"], one["max_duplicates_per_crash"]
    executed, effective = (
        Counter(fault["kind"] for fault in schedule if fault["effective"] or not only) for only in (False, True)
    )
    assert one["faults"] == {
        kind: {"executed": executed[kind], "effective": effective[kind]} for kind in one["options"]["faults"]
    }
    assert executed.keys() <= one["faults"].keys()
    assert one["received"] - one["duplicates"] == one["committed"] - one["lost"] + one["phantom"]
    timed = sum(events for _, events, _ in one["latency"])  # all but those whose commit was not answered
    assert timed == one["committed"] or (one["unknown_outcomes"] and timed < one["committed"])
    crashes = [fault for fault in schedule if fault["kind"] in CRASHES]
    assert one["crashes"] == len(crashes)
    assert one["duplicates_per_crash"] == round(one["duplicates"] / len(crashes), 2)
    relays = one["options"]["relays"] + 1  # one is never hit, and one may replace another at any time
    outages = sum(fault["kind"] in OUTAGES for fault in schedule) * (relays + 1)
    if "unplanned_interruptions" in one:  # the oldest report has another bound
        bound = sum(min(fault["in_flight"], limit) for fault in crashes)
        assert one["max_duplicates"] <= bound + (outages + one["unplanned_interruptions"]) * limit
    assert one["duplicates"] <= one["max_duplicates"]
    for kind, found in one["recovery"].items():
        seconds = [fault["recovery"] for fault in schedule if fault["effective"] and fault["kind"] == kind]
        assert (len(seconds), max(seconds)) == (found["count"], found["max"])
        assert [found["p50"], found["p99"]] == [percentile(seconds, part) for part in (0.5, 0.99)]
    assert all(not fault["effective"] or fault["in_flight"] for fault in schedule if fault["kind"] in KILLS)
    wrong = ("lost", "phantom", "order_violations", "stale_settlements", "wrong_effects", "stuck", "dead_letters")
    assert {field: one[field] for field in wrong if one[field]} == {}
    assert one.get("in_flight_at_end", 0) == 0
    assert one["not_flat"] == []


@pytest.mark.parametrize("name", REPORTS)
def test_the_seed_of_a_committed_report_repeats_its_faults(name: str) -> None:
    one = REPORTS[name]
    planned = schedule(one["seed"], one["options"]["faults"], interval=1.0)
    done = one["schedule"]
    assert [fault["kind"] for fault in done] == [fault.kind for fault in islice(planned, len(done))]


def test_the_committed_runs_reach_the_plan() -> None:
    assert "do not reach" not in page(REPORTS)


def test_only_kills_in_flight_count(report: dict[str, Any]) -> None:
    text = page({"long": report})
    assert "| 1,999,999 | 2,400 (2,390 + 10) |" in text
    assert "Of these on PostgreSQL with quorum queues: 1,999,999 events; 2,400 kills in flight, 2,390 of relays" in text
    assert "0.50 s / 1.25 s" in text
    assert "after 2 outages of the database or the broker: p50 1.00 s, p99 3.00 s, longest 3.00 s" in text
    assert "not known" in text


def test_the_page_says_if_the_plan_is_not_reached(report: dict[str, Any]) -> None:
    assert "do not reach it" in page({"long": report})
    assert "do not reach it" not in page({"long": report, "more": report})
    elsewhere = report | {"store": "mariadb"}
    assert "do not reach it" not in page({"long": report, "more": elsewhere})
    assert "do not reach it" in page({"long": elsewhere, "more": elsewhere})


def test_a_void_run_counts_for_nothing(report: dict[str, Any]) -> None:
    assert "1 run, 0 of them failed; 1,999,999 events" in page(
        {"long": report, "void": report | {"conclusion": "void"}}
    )
