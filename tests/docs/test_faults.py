"""The page of faults is what the generator makes of the fault matrix, and each of its tests exists."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.docs.faults_page import PAGE, page
from tests.docs.pages import ROOT
from tests.fault_matrix.cells import Coverage, Engine, missing, not_applicable, partly, shown
from tests.fault_matrix.results import NodeResult, Results, table, totals
from tests.fault_matrix.rows import ROWS, nodes_of
from tests.tiers import Case

NODE = "tests/faults/test_kills.py::test_kills"


def case(
    name: str, *, module: str = "tests.faults.test_kills", failed: bool = False, skips: tuple[str, ...] = ()
) -> Case:
    return Case(module=module, name=name, failed=failed, skips=skips)


def test_the_page_is_made_of_the_matrix() -> None:
    """`python -m tests.docs.faults_page` writes it."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_row_has_a_name_of_its_own_and_a_cell_for_every_engine() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert {tuple(row.cells()) for row in ROWS} == {tuple(Engine)}


def test_pytest_collects_every_test_of_the_matrix() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *nodes_of()]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr


def test_a_fault_without_tests_is_not_shown() -> None:
    with pytest.raises(ValueError, match="at least one test"):
        shown()
    with pytest.raises(ValueError, match="has tests"):
        partly("everything")
    with pytest.raises(ValueError, match="has a reason"):
        not_applicable("")


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ([case("test_kills[1]"), case("test_kills[2]")], NodeResult.PASSED),
        ([case("test_kills[1]"), case("test_kills[2]", skips=("no server",))], NodeResult.SKIPPED),
        ([case("test_kills[1]", failed=True), case("test_kills[2]", skips=("no server",))], NodeResult.FAILED),
        ([case("test_kills_more")], NodeResult.FAILED),
        ([case("test_kills", module="tests.faults.test_kills.TestKills")], NodeResult.FAILED),
        ([], NodeResult.FAILED),
    ],
)
def test_a_node_passes_if_all_of_its_cases_ran_and_passed(cases: list[Case], expected: NodeResult) -> None:
    assert Results(cases).of(NODE) is expected


def test_a_node_is_one_case_a_test_of_a_class_or_a_file() -> None:
    results = Results(
        [case("test_kills[1]"), case("test_kills[2]", failed=True), case("test_a", module="tests.a.test_b.TestC")]
    )
    assert results.of(f"{NODE}[1]") is NodeResult.PASSED
    assert results.of(f"{NODE}[2]") is NodeResult.FAILED
    assert results.of("tests/a/test_b.py::TestC::test_a") is NodeResult.PASSED
    assert results.of("tests/a/test_b.py") is NodeResult.PASSED
    assert results.of("tests/a/test_bb.py") is NodeResult.FAILED


def test_the_table_shows_only_what_passed() -> None:
    results = Results([case("test_kills", skips=("no server",)), case("test_more")])
    cells = [shown("faults/test_kills.py::test_kills"), partly("half", "faults/test_kills.py::test_more"), missing()]
    assert [results.of_cell(cell) for cell in cells] == ["skipped", Coverage.PARTLY, Coverage.MISSING]
    [titles, *lines] = table(ROWS, results)
    assert titles.split()[:2] == ["fault", "PostgreSQL"]
    assert [line.split()[0] for line in lines] == [row.name for row in ROWS]
    assert "shown" not in totals(ROWS, Results([]))
