"""The tree in the module's docstring has every error of the package, and every error is a public name."""

import ast
import re
from pathlib import Path

import pytest

import pillarbox
from pillarbox.core import errors


def _errors() -> dict[str, str]:
    """Every class of the package that is a PillarboxError → its first base. No module is imported: some need a
    framework."""
    bases = {
        node.name: [base.id for base in node.bases if isinstance(base, ast.Name)]
        for path in Path(pillarbox.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    found = {"PillarboxError"}
    while more := {name for name, above in bases.items() if found.intersection(above)} - found:
        found |= more
    return {name: bases[name][0] for name in found}


ERRORS = _errors()
DRAWN = re.findall(r"^((?:[│ ]   )*(?:[├└]── )?)(\w+Error)( +\*)?", errors.__doc__ or "", re.MULTILINE)


def test_the_tree_in_the_docstring_matches_the_classes() -> None:
    parents: list[str] = []
    for branch, name, _ in DRAWN:
        depth = len(branch) // 4
        assert ERRORS[name] == (parents[depth - 1] if depth else "Exception")
        parents[depth:] = [name]
    assert sorted(name for _, name, _ in DRAWN) == sorted(ERRORS)


@pytest.mark.parametrize(("name", "mark"), [(name, mark) for _, name, mark in DRAWN])
def test_the_marked_errors_are_retryable(name: str, mark: str) -> None:
    assert getattr(pillarbox, name).retryable is bool(mark)


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_every_error_is_importable_from_pillarbox(name: str) -> None:
    assert name in pillarbox.__all__
    assert issubclass(getattr(pillarbox, name), errors.PillarboxError)


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_the_name_of_every_error_ends_in_error(name: str) -> None:
    assert name.endswith("Error")
