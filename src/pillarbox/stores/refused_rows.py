"""Writes batches in which the database refuses some rows for what is in them.

A refused row must not keep the others from being written: the batch is halved until that row is alone, and it becomes a
dead letter. If the database refuses even that, RowsRefusedError names it once all others are written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.lane import Settled

U = TypeVar("U")


def halve(units: Sequence[U]) -> tuple[Sequence[U], Sequence[U]] | None:
    """Both halves of a batch; None if it has a single unit."""
    half = len(units) // 2
    return (units[:half], units[half:]) if half else None


def refusal_text(error: str, *, delivered: bool) -> str:
    """The error of a dead letter whose settlement the database refused."""
    what = "it was delivered, and its settlement" if delivered else "its settlement"
    return f"{what} was refused: {error}; correct the row or the constraint, then retry or discard it"


@dataclass(slots=True, kw_only=True)
class IsolatingWriter(Generic[U]):
    """The writes of one call."""

    dead_letter: Callable[[Sequence[U], str], Awaitable[Settled] | None]
    """Dead-letters a message whose rows are refused; None if the rows are those of a dead letter already."""
    position: Callable[[Sequence[U]], tuple[int, str]]
    """The position of the message of these rows."""
    halve: Callable[[Sequence[U]], tuple[Sequence[U], Sequence[U]] | None] = halve
    """Splits a batch; None if it is one message, whose rows are written together or not at all."""
    _results: list[Settled] = field(default_factory=list)
    _refused: list[RowsRefusedError] = field(default_factory=list)

    async def run(self, units: Sequence[U], write: Callable[[Sequence[U]], Awaitable[Settled]]) -> None:
        """Write a batch, in parts if the database refuses some of it."""
        try:
            self._results.append(await write(units))
        except RowsRefusedError as error:
            if (halves := self.halve(units)) is not None:
                for half in halves:
                    await self.run(half, write)
            elif (written := self.dead_letter(units, str(error))) is None:
                self._refuse(units, error)
            else:
                await self._dead_letter(units, written)

    async def _dead_letter(self, units: Sequence[U], written: Awaitable[Settled]) -> None:
        try:
            self._results.append(await written)
        except RowsRefusedError as error:
            self._refuse(units, error)

    def _refuse(self, units: Sequence[U], error: RowsRefusedError) -> None:
        self._refused.append(RowsRefusedError(str(error), positions=[self.position(units)]))

    def settled(self) -> Settled:
        """The result of all writes. Raises RowsRefusedError for messages that could not even be dead-lettered."""
        if self._refused:
            positions = self._refused[0].positions.union(*(one.positions for one in self._refused))
            raise RowsRefusedError(str(self._refused[0]), positions=positions)
        results = self._results
        if len(results) == 1:
            return results[0]
        if not results:
            return Settled(count=0)
        return Settled(
            count=sum(result.count for result in results),
            duplicates=sum(result.duplicates for result in results),
            lost=results[0].lost.union(*(result.lost for result in results)),
        )
