"""What the operator interface needs of an SQL engine.

Statements take their parameters by name, as in `:limit`. A parameter is text, a number, a truth value, bytes, a time, a
list of these, or None; the engine encodes it. Rows come back as the driver decodes them; `decode_time` decodes the
times in them.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from pillarbox.statements import NamedStatement, load_statements

ResultRow = Sequence[Any]
Parameters = Mapping[str, object]
T = TypeVar("T")
StatementSteps = Generator[tuple[str, Parameters], Sequence[ResultRow], T]
"""The statements of a transaction with their parameters; each `yield` returns the rows of its statement."""

LAST = 2**63 - 1
"""A number above all numbers of rows."""


class Engine(Protocol):
    """Runs the statements of one outbox."""

    def statement(self, name: str, *variants: str) -> str:
        """Return a statement by its name, in these variants."""
        ...

    async def read(self, statement: str, given: Parameters) -> Sequence[ResultRow]:
        """Run one statement that only reads."""
        ...

    async def read_all(self, statements: Sequence[str], given: Parameters) -> Sequence[Sequence[ResultRow]]:
        """Run several statements that only read, with the same parameters; in one snapshot where the engine can."""
        ...

    async def write(self, statement: str, given: Parameters) -> Sequence[ResultRow]:
        """Run one statement that writes, in a transaction of its own."""
        ...

    async def transact(self, steps: StatementSteps[T]) -> T:
        """Run several statements in one transaction; returns what the generator returns."""
        ...

    def decode_time(self, value: Any) -> datetime:
        """Decode a time of a row."""
        ...


def decode_optional_time(engine: Engine, value: Any) -> datetime | None:
    """Decode a time of a row that may have none."""
    return None if value is None else engine.decode_time(value)


def shared_statements() -> tuple[Mapping[str, NamedStatement], ...]:
    """The fragments of messages and the statements of operators that all SQL engines share, for a `StatementSet`."""
    return load_statements("pillarbox.stores"), load_statements("pillarbox.stores.admin")
