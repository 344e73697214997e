"""CONTRIBUTING.md: its tree, its tiers and its commands exist; the pre-commit hooks are the checks of `make check`."""

import ast
import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.tiers import TIERS

PATH = ROOT / "CONTRIBUTING.md"
PAGE = PATH.read_text(encoding="utf-8")
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_the_tree_has_every_package_and_no_other_folder() -> None:
    [tree] = [block for block in blocks(PATH, "") if block.startswith("src/pillarbox/")]
    packages = {folder.parent.name for folder in (ROOT / "src/pillarbox").glob("*/__init__.py")}
    assert set(re.findall(r"^  (\w+)/ ", tree, re.MULTILINE)) == packages
    for top, inside in re.findall(r"^(tests|docs)/ +(.+)$", tree, re.MULTILINE):
        assert [name for name in re.findall(r"[\w-]+/", inside) if not (ROOT / top / name).is_dir()] == []
    assert all((ROOT / folder).is_dir() for folder in re.findall(r"^(\w+)/", tree, re.MULTILINE))


@pytest.mark.parametrize("step", re.findall(r"^\| \d+ \| .+ \| (.+) \|$", PAGE, re.MULTILINE))
def test_a_step_of_the_path_names_modules_that_exist(step: str) -> None:
    for name in re.findall(r"`([\w/*.]+)`", step):
        assert any((ROOT / "src/pillarbox").glob(name.rstrip("/"))), name


def test_every_tier_is_listed_with_its_folder() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (?:`(tests/[\w/]+)`)?.*\| .+\? \|$", PAGE, re.MULTILINE)
    assert set(rows) == {(tier.name, tier.folder or "") for tier in TIERS}


def test_no_test_sleeps_for_a_fixed_time() -> None:
    """Outside virtual time, which a module imports."""
    sleeps = {
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in (ROOT / "tests").rglob("*.py")
        if not path.is_relative_to(ROOT / "tests/simulation")
        if "pillarbox.testing.simulation" not in (source := path.read_text(encoding="utf-8"))
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call)
        and call.args
        and ast.unparse(call.func) in ("time.sleep", "asyncio.sleep", "sleep")
        if re.fullmatch(r"[\d._e+-]*[1-9][\d._e+-]*", ast.unparse(call.args[0]))
    }
    assert sleeps == set()


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))
    assert set(re.findall(r"`make ([\w-]+)`", PAGE)) <= targets


def test_the_hooks_are_the_checks() -> None:
    [check] = [tier for tier in TIERS if tier.name == "check"]
    commands = [" ".join([f".venv/bin/{Path(command[0]).name}", *command[1:]]) for command in check.commands]
    assert re.findall(r"^ +entry: (.+)$", HOOKS, re.MULTILINE) == commands


def test_every_hook_checks_the_whole_tree() -> None:
    hooks = HOOKS.split("- id: ")[1:]
    assert [hook for hook in hooks if "pass_filenames: false" not in hook or "language: system" not in hook] == []


def test_no_module_of_the_package_has_more_lines_than_allowed() -> None:
    limit = int(re.findall(r"Keep a module of `src` at (\d+) lines", PAGE)[0])
    modules = (ROOT / "src").rglob("*.py")
    assert [str(path) for path in modules if path.read_text(encoding="utf-8").count("\n") > limit] == []
