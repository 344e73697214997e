"""The tree in the module's docstring matches the classes, and every error is a public name."""

import re

import pytest

import pillarbox
from pillarbox.core import errors

ERRORS = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.PillarboxError)
}
DRAWN = re.findall(r"^((?:[│ ]   )*(?:[├└]── )?)(\w+Error)( +\*)?", errors.__doc__ or "", re.MULTILINE)


def test_the_tree_in_the_docstring_matches_the_classes() -> None:
    parents: list[str] = []
    for branch, name, _ in DRAWN:
        depth = len(branch) // 4
        assert ERRORS[name].__bases__[0].__name__ == (parents[depth - 1] if depth else "Exception")
        parents[depth:] = [name]
    assert sorted(name for _, name, _ in DRAWN) == sorted(ERRORS)


@pytest.mark.parametrize(("name", "mark"), [(name, mark) for _, name, mark in DRAWN])
def test_the_marked_errors_are_retryable(name: str, mark: str) -> None:
    assert ERRORS[name].retryable is bool(mark)


@pytest.mark.parametrize("name", list(ERRORS))
def test_every_error_is_importable_from_pillarbox(name: str) -> None:
    assert name in pillarbox.__all__
    assert getattr(pillarbox, name) is ERRORS[name]


@pytest.mark.parametrize("name", list(ERRORS))
def test_the_name_of_every_error_ends_in_error(name: str) -> None:
    assert name.endswith("Error")
