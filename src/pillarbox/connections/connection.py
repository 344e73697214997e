"""What a connection is to `record` and the inbox: a way to run a few statements in the caller's transaction.

The statements to run are an operation: a generator that yields statements and is sent their rows. An operation is
written once; only `drive` and `adrive` know whether the driver blocks or is awaited. Nothing in this package begins,
commits or rolls back the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

Rows = Sequence[Sequence[Any]]
T = TypeVar("T")


class BoundStatement(NamedTuple):
    """SQL with the placeholders $1 … $n, each used once and in order, and their values."""

    sql: str
    parameters: tuple[object, ...] = ()


Steps = Generator[BoundStatement, Rows, T]
Operation = Callable[[str], Steps[T]]
"""Creates the steps for a dialect of SQL, given its name: that of its module in `pillarbox.dialects`."""


class SyncConnection(Protocol):
    """The caller's transaction on a driver that blocks."""

    def run(self, operation: Operation[T]) -> T:
        """Run the operation. Raises NotInTransactionError if its first write would commit by itself."""
        ...


class AsyncConnection(Protocol):
    """The caller's transaction on a driver that is awaited."""

    async def arun(self, operation: Operation[T]) -> T:
        """Run the operation. Raises NotInTransactionError if its first write would commit by itself."""
        ...


def guarded(guard: Steps[None], operation: Operation[T], dialect: str) -> Steps[T]:
    """The steps of the guard, then those of the operation."""
    yield from guard
    return (yield from operation(dialect))


def drive(steps: Steps[T], execute: Callable[[BoundStatement], Rows]) -> T:
    """Run every step; the operation sees the rows, or the driver's exception at its own `yield`."""
    try:
        statement = next(steps)
        while True:
            try:
                rows = execute(statement)
            except Exception as error:
                statement = steps.throw(error)
            else:
                statement = steps.send(rows)
    except StopIteration as done:
        result: T = done.value
        return result


async def adrive(steps: Steps[T], execute: Callable[[BoundStatement], Awaitable[Rows]]) -> T:
    """`drive`, awaited."""
    try:
        statement = next(steps)
        while True:
            try:
                rows = await execute(statement)
            except Exception as error:
                statement = steps.throw(error)
            else:
                statement = steps.send(rows)
    except StopIteration as done:
        result: T = done.value
        return result
