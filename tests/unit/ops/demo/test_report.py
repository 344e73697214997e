"""How the demo tells its verdict."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from pillarbox.ops.demo import report
from pillarbox.ops.demo.run import Outcome
from pillarbox.ops.demo.scene import Scene
from pillarbox.ops.demo.verdict import Account, Verdict

SCENE = Scene(folder=Path("x"), name="x")
PAGE = Path(__file__).resolve().parents[4] / "docs/how-to/watch-the-demo.md"


def outcome(*, kills: int = 0, repeats: int = 0, lost: tuple[str, ...] = ()) -> Outcome:
    account = Account(
        receiver="mailer",
        handled=1234 - len(lost),
        refused=0,
        failed=60,
        lost=lost,
        phantom=(),
        disordered=(),
        repeats=repeats,
    )
    verdict = Verdict(committed=1234, accounts=(account,), dead_letters=0, most_repeats=200 * kills)
    return Outcome(verdict=verdict, seconds=10.04, rolled_back=99, kills=kills, epoch=1 + kills)


def told(found: Outcome) -> list[str]:
    console = Console(file=io.StringIO(), width=120, record=True)
    console.print(report.table(found), highlight=False)
    return console.export_text().splitlines()


def test_a_good_end_is_told_in_one_line() -> None:
    *_, facts, verdict = told(outcome())
    assert facts == "1,234 events committed with their orders in 10.0 s, 99 rolled back; no relay was killed."
    assert verdict == "✔ Nothing lost, nothing invented, every order in order, nothing sent twice."


def test_repeats_after_a_kill_are_told_with_their_bound() -> None:
    assert told(outcome(kills=1, repeats=12))[-1].endswith("; 12 sent twice (at most 200).")
    assert "the relay was killed 3 times" in told(outcome(kills=3))[-2]


def test_a_bad_end_names_every_failure() -> None:
    assert told(outcome(lost=("e1", "e2")))[-1] == "✘ 2 events never reached mailer, such as e1"


@pytest.mark.parametrize("part", ["", "receivers"])
def test_every_key_for_scripts_is_documented(part: str) -> None:
    figures = report.figures(SCENE, outcome())
    if part:
        receivers = figures[part]
        assert isinstance(receivers, list)
        figures = receivers[0]
    page = PAGE.read_text(encoding="utf-8")
    assert [key for key in figures if f"`{key}`" not in page] == []
