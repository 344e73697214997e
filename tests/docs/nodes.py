"""The tests that pages name, as pytest would find them: `tests/…/test_file.py::test_name`, or a class in between, or
a class alone: `tests/conformance/test_nats.py::TestNats` inherits its tests, which may be named, too."""

import ast
import re
from functools import cache
from pathlib import Path

from tests.docs.pages import ROOT

NODE = re.compile(r"`((?:tests|src)/[\w/]+\.py::[\w:]+)`")


@cache
def tests_of(file: Path) -> frozenset[str]:
    """`test_name`, `TestClass` and `Class::test_name`, for everything in a file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    suites = {each.name for each in classes if each.name.startswith("Test")}
    return frozenset(_tests(tree, "")) | suites | {one for each in classes for one in _tests(each, f"{each.name}::")}


def _tests(inside: ast.Module | ast.ClassDef, prefix: str) -> list[str]:
    functions = [node for node in inside.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [prefix + function.name for function in functions if function.name.startswith("test_")]


@cache
def inherited() -> frozenset[str]:
    """`test_name` of every test that the conformance suites share with the classes that inherit them."""
    files = (ROOT / "src/pillarbox/testing/conformance").rglob("*.py")
    return frozenset(name.rpartition("::")[2] for file in files for name in tests_of(file))


def exists(node: str) -> bool:
    path, _, name = node.partition("::")
    file = ROOT / path
    suite, _, test = name.partition("::")
    return file.is_file() and (name in tests_of(file) or (suite in tests_of(file) and test in inherited()))
