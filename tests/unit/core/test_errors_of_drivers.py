"""Texts of driver exceptions, with any chain of causes."""

from collections.abc import Callable
from itertools import islice

import pytest

from pillarbox.core.errors import layers, presentable, primary_text


class Wrapper(Exception):
    """Like SQLAlchemy's: the driver's exception is `orig`."""

    def __init__(self, text: str, orig: BaseException | None = None) -> None:
        super().__init__(text)
        self.orig = orig


def to_itself() -> Wrapper:
    error = Wrapper("first")
    error.orig = error
    return error


def in_a_circle() -> Wrapper:
    inner = Wrapper("inner")
    inner.orig = outer = Wrapper("outer", inner)
    return outer


def cause_in_a_circle() -> Exception:
    outer, inner = ValueError("outer"), ValueError("inner")
    outer.__cause__, inner.__cause__ = inner, outer
    return outer


@pytest.mark.parametrize(("make", "count"), [(to_itself, 1), (in_a_circle, 2), (cause_in_a_circle, 2)])
def test_circular_exception_chains_end(make: Callable[[], Exception], count: int) -> None:
    error = make()
    # Bounded, so that a failing test ends.
    assert len(list(islice(layers(error), 10))) == count
    assert primary_text(error) in ("first", "inner", "outer")
    assert presentable(error) is not None


def test_the_text_is_the_first_line_of_the_driver() -> None:
    driver = ValueError("duplicate key\nDETAIL: (a secret)")
    assert primary_text(Wrapper("statement with parameters", driver)) == "duplicate key"
