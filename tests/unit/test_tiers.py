"""The tiers: a tier without tests fails, and skipped tests are counted and reported."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from pillarbox.testing.conformance.capability import NOT_SUPPORTED
from tests import tiers
from tests.tiers import Counts, Result, Tier, TierReport, summary

TESTS = """
import pytest

def test_passes():
    pass

@pytest.mark.parametrize("number", [1, 2])
def test_needs_a_server(number):
    pytest.skip("there is no server")

def test_needs_a_capability():
    pytest.skip("not supported: this store has a single lane")
"""


@pytest.fixture
def output(tmp_path: Path) -> Iterator[IO[str]]:
    """A file: the processes of a tier write to its descriptor."""
    with (tmp_path / "output.txt").open("w+") as file:
        yield file


@pytest.mark.parametrize("marked", [None, "lost"])
def test_a_tier_without_tests_fails(tmp_path: Path, output: IO[str], marked: str | None) -> None:
    if marked:
        (tmp_path / "test_some.py").write_text(TESTS)
    report = Tier(name="some", folder=str(tmp_path), marked=marked).run(output)
    assert (report.result, report.counts.passed) == (Result.FAILED, 0)


def test_a_tier_counts_passed_and_skipped_tests(tmp_path: Path, output: IO[str]) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    report = Tier(name="some", folder=str(tmp_path)).run(output)
    assert (report.result, report.counts.passed, report.counts.skipped.total()) == (Result.PASSED, 1, 3)
    assert report.counts.unexpected == {"there is no server": 2}


def test_a_failed_test_fails_its_tier_and_is_not_counted_as_passed(tmp_path: Path, output: IO[str]) -> None:
    (tmp_path / "test_some.py").write_text(TESTS + "\ndef test_fails():\n    assert False\n")
    report = Tier(name="some", folder=str(tmp_path)).run(output)
    assert (report.result, report.counts.passed) == (Result.FAILED, 1)


def test_the_summary_warns_of_skipped_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "IN_CI", False)
    lines = list(summary([report_of(Counter({"there is no server": 2}))], seconds=1.0))
    assert "WARNING: 2 tests were skipped" in lines[-2]
    assert lines[-1].split() == ["some", "2", "×", "there", "is", "no", "server"]


@pytest.mark.parametrize(
    ("in_ci", "reason", "status"),
    [
        ("true", "there is no server", 1),
        ("", "there is no server", 0),
        ("true", f"{NOT_SUPPORTED}this store has a single lane", 0),
    ],
)
def test_an_unexpected_skip_fails_the_run_in_ci(tmp_path: Path, in_ci: str, reason: str, status: int) -> None:
    (tmp_path / "test_some.py").write_text(
        f"import pytest\n\ndef test_passes():\n    pass\n\ndef test_skips():\n    pytest.skip({reason!r})\n"
    )
    script = f"from tests import tiers; tiers.TIERS = (tiers.Tier(name='some', folder={str(tmp_path)!r}),); "
    ran = subprocess.run(
        [sys.executable, "-c", script + "raise SystemExit(tiers.main([]))"],
        env=os.environ | {"CI": in_ci},
        cwd=tiers.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == status, ran.stdout + ran.stderr
    assert ("ERROR: 1 tests were skipped" in ran.stdout) == (status == 1)


def test_the_summary_does_not_warn_of_missing_capabilities() -> None:
    lines = list(summary([report_of(Counter({f"{NOT_SUPPORTED}this store has a single lane": 1}))], seconds=1.0))
    assert lines[-2].split() == ["some", "1.0", "1.0", "5", "1", "passed"]
    assert "WARNING" not in "".join(lines)


def test_the_tiers_recognize_the_skips_of_the_suites() -> None:
    assert tiers.NOT_SUPPORTED == NOT_SUPPORTED


def report_of(skipped: Counter[str]) -> TierReport:
    counts = Counts(passed=5, skipped=skipped)
    return TierReport(name="some", result=Result.PASSED, seconds=1.0, cpu=1.0, counts=counts)
