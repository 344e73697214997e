"""What a drill concludes from its findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import pytest
from rich.console import Console

from pillarbox.ops.drill.checker import SOUND, Findings
from pillarbox.ops.drill.html import page
from pillarbox.ops.drill.recovery import DeliveryTimes, LatencyPoint, percentile
from pillarbox.ops.drill.report import table
from pillarbox.ops.drill.result import LONGEST_RECOVERY, DrillResult, Remainder
from pillarbox.ops.drill.schedule import ExecutedFault

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


def fault(
    kind: str = "kill", *, effective: bool = True, in_flight: int = 3, began: float = 1.0, victim: str = ""
) -> ExecutedFault:
    return ExecutedFault(
        kind=kind,  # type: ignore[arg-type] # one of them
        began=began,
        ended=began + 1,
        took_effect=effective,
        in_flight=in_flight,
        victim=victim,
    )


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
        remainder=Remainder(),
        dead_letters=0,
        faults=faults,
        recoveries=[0.5] * len(faults),
        interruptions=0,
        unplanned_interruptions=0,
        max_in_flight=200,
        relays=3,
        began=0.0,
        latencies=[LatencyPoint(0.0, 60, 0.5), LatencyPoint(5.0, 40, 0.1)],
    )


def test_a_run_without_an_effective_fault_is_void() -> None:
    assert result().conclusion == result(faults=[fault(effective=False)]).conclusion == "void"
    assert result(faults=[fault()]).conclusion == "passed"


def test_a_kind_that_was_executed_often_and_never_took_effect_makes_a_run_void() -> None:
    idle = [fault("freeze", effective=False)] * 2
    assert result(faults=[fault(), *idle]).void_reasons == []
    found = result(faults=[fault(), *idle, *idle])
    assert (found.conclusion, found.void_reasons) == ("void", ["freeze was executed 4 times and never took effect"])
    assert result(faults=[fault(), *idle, *idle, fault("freeze")]).conclusion == "passed"
    assert "void: freeze was executed 4 times and never took effect, so that" in page(found.as_json())


@pytest.mark.parametrize("field", ["lost", "phantom", "out_of_order", "stale", "wrong_effects"])
def test_any_finding_is_a_violation_also_in_a_void_run(field: str) -> None:
    found = result(Findings(**SOUND._asdict() | {field: ["x"]}))
    assert found.conclusion == "failed"
    assert [text for text in found.violations if "for example x" in text] == found.violations


def test_stuck_events_and_dead_letters_are_violations() -> None:
    assert replace(result(), remainder=Remainder(stuck=1)).conclusion == "failed"
    assert replace(result(), dead_letters=1).conclusion == "failed"


def test_messages_in_flight_at_the_end_are_a_violation() -> None:
    found = replace(result(), remainder=Remainder(in_flight=2))
    assert found.violations == ["2 messages were in flight when the relays had drained"]


def test_a_late_recovery_is_a_warning_because_a_busy_machine_may_be_the_reason() -> None:
    found = replace(result(faults=[fault(), fault()]), recoveries=[0.5, LONGEST_RECOVERY + 0.1])
    warning = "the recovery from kill took up to 19.1 s; 19 s are expected at most"
    assert (found.conclusion, found.warnings) == ("passed", [warning])
    assert warning in page(found.as_json())
    assert result(faults=[fault()]).warnings == []


def test_duplicates_are_bounded_by_what_each_crash_can_have_had_in_flight() -> None:
    def bound(*faults: ExecutedFault) -> int:
        return result(faults=faults).max_duplicates

    assert (bound(fault(in_flight=3), fault("freeze", in_flight=500)), bound(fault("drain"))) == (3 + 200, 0)
    assert bound(fault("cut-broker"), fault("kill-consumer"), fault("unroutable")) == 4 * 200
    repeated = result(SOUND._replace(duplicates=4), [fault(in_flight=3)])
    assert (repeated.conclusion, repeated.violations) == ("failed", ["4 duplicates, but at most 3 possible"])
    assert replace(repeated, unplanned_interruptions=1).conclusion == "passed"
    assert replace(repeated, interruptions=1).conclusion == "failed"


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
