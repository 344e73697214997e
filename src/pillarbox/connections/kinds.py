"""Foreign objects are known by their class's name and package: nothing that may be missing is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

V = TypeVar("V")


def kind_of(thing: object, known: Mapping[tuple[str, str], V]) -> V | None:
    """What `known` says of the first class in the thing's family, by (package, class name)."""
    for family in type(thing).__mro__:
        found = known.get((family.__module__.partition(".")[0], family.__name__))
        if found is not None:
            return found
    return None
