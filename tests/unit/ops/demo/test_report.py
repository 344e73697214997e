"""The report of the demo."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from pillarbox.ops.demo import report
from pillarbox.ops.demo.environment import DemoEnvironment
from pillarbox.ops.demo.run import DemoResult
from pillarbox.ops.demo.verification import ReceiverResult, Verification

ENVIRONMENT = DemoEnvironment(folder=Path("x"), name="x")
PAGE = Path(__file__).resolve().parents[4] / "docs/how-to/watch-the-demo.md"


def demo_result(*, kills: int = 0, duplicates: int = 0, lost: tuple[str, ...] = ()) -> DemoResult:
    result = ReceiverResult(
        receiver="mailer",
        handled=1234 - len(lost),
        rejected=0,
        failed=60,
        lost=lost,
        phantom=(),
        out_of_order=(),
        duplicates=duplicates,
    )
    verification = Verification(committed=1234, results=(result,), dead_letters=0, max_duplicates=200 * kills)
    return DemoResult(verification=verification, seconds=10.04, rolled_back=99, kills=kills, epoch=1 + kills)


def printed(found: DemoResult) -> list[str]:
    console = Console(file=io.StringIO(), width=120, record=True)
    console.print(report.table(found), highlight=False)
    return console.export_text().splitlines()


def test_success_is_reported_in_one_line() -> None:
    *_, totals, summary = printed(demo_result())
    assert totals == "1,234 events committed in 10.0 s, 99 rolled back; no relay was killed."
    assert summary == "✔ No event lost, no phantom event, every order in sequence, no duplicates."


def test_duplicates_after_a_kill_are_reported_with_their_limit() -> None:
    assert printed(demo_result(kills=1, duplicates=12))[-1].endswith("; 12 duplicates (at most 200 possible).")
    assert "the relay was killed 3 times" in printed(demo_result(kills=3))[-2]


def test_every_failure_is_reported() -> None:
    assert printed(demo_result(lost=("e1", "e2")))[-1] == "✘ 2 events lost: never reached mailer, for example e1"


@pytest.mark.parametrize("part", ["", "receivers"])
def test_every_json_key_is_documented(part: str) -> None:
    fields = report.as_json(ENVIRONMENT, demo_result())
    if part:
        receivers = fields[part]
        assert isinstance(receivers, list)
        fields = receivers[0]
    page = PAGE.read_text(encoding="utf-8")
    assert [key for key in fields if f"`{key}`" not in page] == []
