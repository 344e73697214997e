"""A sorted list, like an index of a database."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T", bound=tuple[Any, ...])


class Ordered(Generic[T]):
    """Distinct tuples in their order."""

    def __init__(self) -> None:
        self._items: list[T] = []

    def add(self, item: T) -> None:
        insort(self._items, item)

    def remove(self, item: T) -> None:
        """Remove an item that is in it."""
        del self._items[bisect_left(self._items, item)]

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __bool__(self) -> bool:
        return bool(self._items)
