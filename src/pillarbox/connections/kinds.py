"""Recognise objects of third-party packages by their class's name and package, without importing the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

V = TypeVar("V")


def kind_of(thing: object, known: Mapping[tuple[str, str], V]) -> V | None:
    """The entry of `known` for the first class in the object's MRO, by (package, class name); None if there is none."""
    for family in type(thing).__mro__:
        found = known.get((family.__module__.partition(".")[0], family.__name__))
        if found is not None:
            return found
    return None
