"""What a drill concludes from its findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import pytest
from rich.console import Console

from pillarbox.ops.drill.checker import SOUND, Findings
from pillarbox.ops.drill.faults import ExecutedFault
from pillarbox.ops.drill.html import page
from pillarbox.ops.drill.recovery import DeliveryTimes, LatencyPoint, percentile
from pillarbox.ops.drill.report import table
from pillarbox.ops.drill.result import DrillResult

SETUP = {
    "seed": 7,
    "ended_at": "2026-11-30T09:00:00.000000Z",
    "pillarbox": "0.1.0",
    "python": "3.11.7",
    "store": "sqlite",
    "store_version": "3.40.1",
    "transport": "handlers",
    "options": {"faults": ["kill", "freeze"]},
}


def fault(kind: str = "kill", *, effective: bool = True) -> ExecutedFault:
    return ExecutedFault(kind=kind, began=1.0, ended=2.0, took_effect=effective, in_flight=3)  # type: ignore[arg-type]


def result(findings: Findings = SOUND, faults: Sequence[ExecutedFault] = ()) -> DrillResult:
    return DrillResult(
        setup=SETUP,
        seconds=10.0,
        committed=100,
        rolled_back=10,
        unknown_outcomes=0,
        received=100,
        findings=findings,
        order_is_known=True,
        stuck=0,
        dead_letters=0,
        faults=faults,
        recoveries=[0.5] * len(faults),
        interruptions=0,
        max_in_flight=200,
        relays=3,
        began=0.0,
        latencies=[LatencyPoint(0.0, 60, 0.5), LatencyPoint(5.0, 40, 0.1)],
    )


def test_a_run_without_an_effective_fault_is_void() -> None:
    assert result().conclusion == result(faults=[fault(effective=False)]).conclusion == "void"
    assert result(faults=[fault()]).conclusion == "passed"


@pytest.mark.parametrize("field", ["lost", "phantom", "out_of_order", "stale", "wrong_effects"])
def test_any_finding_is_a_violation_also_in_a_void_run(field: str) -> None:
    found = result(Findings(**SOUND._asdict() | {field: ["x"]}))
    assert found.conclusion == "failed"
    assert [text for text in found.violations if "for example x" in text] == found.violations


def test_stuck_events_and_dead_letters_are_violations() -> None:
    assert replace(result(), stuck=1).conclusion == replace(result(), dead_letters=1).conclusion == "failed"


def test_duplicates_are_bounded_by_what_each_crash_can_have_had_in_flight() -> None:
    twice = SOUND._replace(duplicates=200)
    assert result(twice, [fault()]).conclusion == "passed"
    assert result(twice, [fault("drain")]).conclusion == "failed"
    assert result(twice._replace(duplicates=201), [fault()]).conclusion == "failed"
    assert replace(result(twice._replace(duplicates=201), [fault()]), interruptions=1).conclusion == "passed"


def test_an_order_that_is_not_known_is_reported_as_such() -> None:
    found = replace(result(SOUND._replace(out_of_order=["k"]), [fault()]), order_is_known=False)
    assert (found.conclusion, found.as_json()["order_violations"]) == ("passed", None)


def test_the_recovery_is_until_everything_that_was_committed_by_then_arrived() -> None:
    times = DeliveryTimes({"a": 1.0, "b": 2.0, "late": 9.0}, [(1.1, "a"), (5.0, "b"), (5.5, "b"), (9.5, "late")])
    assert times.recovery(2.0) == 3.0
    assert times.recovery(6.0) == 0.0
    assert times.recovery(0.1) == 0.0


def test_percentiles() -> None:
    values = [float(number) for number in range(1, 101)]
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile([3.0], 0.99)) == (50.0, 99.0, 3.0)


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found += [f"{tag} {name}" for name, _ in attributes if name in ("src", "href")]


def test_the_page_is_self_contained_and_shows_faults_and_violations() -> None:
    text = page(result(SOUND._replace(lost=["<x>"]), [fault()]).as_json())
    links = Links()
    links.feed(text)
    assert links.found == []
    assert "for example &lt;x&gt;" in text
    assert text.count("<line ") == 1
    assert text.count("<rect ") == 2


def test_the_table_names_each_violation() -> None:
    console = Console(width=100, record=True, file=StringIO())
    console.print(table(result(SOUND._replace(lost=["x"]), [fault()]).as_json()))
    text = console.export_text()
    assert "FAILED" in text
    assert "1 event lost: committed, but never received, for example x" in text
