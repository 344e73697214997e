"""What the operators' half needs of an SQL engine.

Statements take their parameters by name, as in `:limit`. A parameter is text, a number, a truth value, bytes, a time, a
list of these, or None; the engine encodes it. Rows come back as the driver decodes them; `moment` decodes the times in
them.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

Row = Sequence[Any]
Given = Mapping[str, object]
T = TypeVar("T")
Steps = Generator[tuple[str, Given], Sequence[Row], T]
"""The statements of a transaction with their parameters; each `yield` returns the rows of its statement."""

ADMIN = "pillarbox.stores.admin"
"""The package with the statements that all engines share, in its folder `sql`."""

LAST = 2**63 - 1
"""A number above all numbers of rows."""


class Engine(Protocol):
    """Runs the statements of one outbox."""

    def statement(self, name: str, *variants: str) -> str:
        """Return a statement by its name, in these variants."""
        ...

    async def read(self, statement: str, given: Given) -> Sequence[Row]:
        """Run one statement that only reads."""
        ...

    async def read_all(self, statements: Sequence[str], given: Given) -> Sequence[Sequence[Row]]:
        """Run several statements that only read, with the same parameters; in one snapshot where the engine can."""
        ...

    async def write(self, statement: str, given: Given) -> Sequence[Row]:
        """Run one statement that writes, in a transaction of its own."""
        ...

    async def transact(self, steps: Steps[T]) -> T:
        """Run several statements in one transaction; returns what the generator returns."""
        ...

    def moment(self, value: Any) -> datetime:
        """Decode a time of a row."""
        ...


def moment_or_none(engine: Engine, value: Any) -> datetime | None:
    """Decode a time of a row that may have none."""
    return None if value is None else engine.moment(value)
