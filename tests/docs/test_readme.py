"""The README: guarantees first, and nothing claimed that no test shows."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs.nodes import NODE, exists
from tests.docs.pages import ROOT, blocks

PATH = ROOT / "README.md"
PAGE = PATH.read_text(encoding="utf-8")
CLAIMS = re.findall(r"^\| (\d?) ?\| (.+?) \| (`.+`) \|$", PAGE, re.MULTILINE)
GUARANTEES = re.findall(r"^(\d)\. \*\*", PAGE, re.MULTILINE)


def test_what_it_guarantees_comes_first() -> None:
    assert re.findall(r"^## (.+)$", PAGE, re.MULTILINE)[0] == "What it guarantees"


def test_every_guarantee_is_among_the_claims() -> None:
    assert GUARANTEES == ["1", "2", "3", "4", "5", "6", "7"]
    assert sorted({number for number, *_ in CLAIMS if number}) == GUARANTEES


def test_every_row_of_the_claims_names_tests_and_nothing_else() -> None:
    rows = PAGE[PAGE.index("## Claims and their tests") : PAGE.index("## What was not tested")].count("\n| ") - 1
    assert len(CLAIMS) == rows
    assert [
        claim for _, claim, tests in CLAIMS if ", ".join(f"`{node}`" for node in NODE.findall(tests)) != tests
    ] == []


@pytest.mark.parametrize("node", sorted({node for *_, tests in CLAIMS for node in NODE.findall(tests)}))
def test_every_named_test_exists(node: str) -> None:
    assert exists(node)


def test_a_test_that_is_not_there_would_be_noticed() -> None:
    assert not exists("tests/docs/test_readme.py::test_of_nothing")
    assert not exists("tests/docs/test_of_nothing.py::test_what_it_guarantees_comes_first")


def test_the_example_is_twenty_lines_and_does_what_it_says(tmp_path: Path) -> None:
    [code] = blocks(PATH, "python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    (tmp_path / "shop.py").write_text(code, encoding="utf-8")
    shown = subprocess.run([sys.executable, "shop.py"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert shown == "receipt for order 42\n"


def test_the_make_targets_exist() -> None:
    targets = re.findall(r"^(\w+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = re.findall(r"^\$ make (\w+)", "\n".join(blocks(PATH, "console")), re.MULTILINE)
    assert named == ["demo", "test"]
    assert set(named) <= set(targets)


def test_the_tree_is_the_tree() -> None:
    [tree] = [block for block in blocks(PATH, "") if block.startswith("src/pillarbox/")]
    packages = {folder.parent.name for folder in (ROOT / "src/pillarbox").glob("*/__init__.py")}
    assert set(re.findall(r"^  (\w+)/ ", tree, re.MULTILINE)) == packages
    for top, inside in re.findall(r"^(tests|docs)/ +(.+)$", tree, re.MULTILINE):
        assert [name for name in inside.split() if not (ROOT / top / name).is_dir()] == []
    assert all((ROOT / folder).is_dir() for folder in re.findall(r"^(\w+)/", tree, re.MULTILINE))


def test_the_extras_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = {extra for group in re.findall(r"pillarbox\[([\w,]+)\]", PAGE) for extra in group.split(",")}
    assert named
    assert named <= set(extras)


def test_the_picture_of_the_demo_is_shown() -> None:
    assert "](docs/pictures/demo.svg)" in PAGE
