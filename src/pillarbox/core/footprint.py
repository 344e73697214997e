"""How much room a store takes, and who holds its past back: estimates of the database itself, never a count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Part(NamedTuple):
    """A table with its indexes, or whatever else takes room; None is what nobody knows."""

    name: str
    rows: int | None
    dead_rows: int | None
    """Gone, and not cleared away yet."""
    bytes: int
    whole: str = ""
    """The table of which it is a partition; '' if it is none."""


class OpenTransaction(NamedTuple):
    """A transaction of which dead rows must wait for the end."""

    pid: int
    who: str
    application: str
    state: str
    seconds: float
    query: str
    """Short, and without what is written into it."""


class Footprint(NamedTuple):
    """The largest part first."""

    parts: Sequence[Part]
    oldest: OpenTransaction | None = None
    """None: there is none, or it cannot be seen."""

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)
