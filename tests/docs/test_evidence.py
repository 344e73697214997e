"""The page of evidence is what the generator makes of the raw reports, and says what they do not show."""

from __future__ import annotations

from typing import Any

import pytest

from tests.docs.evidence import PAGE, page, read_reports


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
    }


def test_the_page_is_what_the_reports_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(read_reports())


def test_no_committed_run_is_void_or_failed() -> None:
    assert {name: one["conclusion"] for name, one in read_reports().items() if one["conclusion"] != "passed"} == {}


def test_only_kills_in_flight_count(report: dict[str, Any]) -> None:
    text = page({"long": report})
    assert "| 1,999,999 | 2,400 (2,390 + 10) |" in text
    assert "Of these on PostgreSQL with quorum queues: 1,999,999 events; 2,400 kills in flight, 2,390 of relays" in text
    assert "0.50 s / 1.25 s" in text
    assert "not known" in text


def test_the_page_says_if_the_plan_is_not_reached(report: dict[str, Any]) -> None:
    assert "do not reach it" in page({"long": report})
    assert "do not reach it" not in page({"long": report, "more": report})


def test_a_void_run_counts_for_nothing(report: dict[str, Any]) -> None:
    assert "1 run, 0 of them failed; 1,999,999 events" in page(
        {"long": report, "void": report | {"conclusion": "void"}}
    )
