"""What a bulk action would change, in a few lines: how many events of which type, for which destination, with which
error, and one of them. A confirmation shows these lines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol

from pillarbox.core.text import plural
from pillarbox.ops.dead_letter_groups import reason_of

LINES = 5
"""Lines that a confirmation shows."""
EXAMINED = 10_000
"""Selected events whose errors are compared."""


class SelectedEvent(Protocol):
    """What a summary needs to know of an event."""

    @property
    def event_id(self) -> str: ...
    @property
    def event_type(self) -> str: ...
    @property
    def destination(self) -> str: ...


@dataclass(frozen=True, slots=True, order=True)
class SummaryLine:
    """Selected events with one type, destination and reason."""

    count: int
    event_type: str
    destination: str
    """'' if no relay has found a route yet."""
    reason: str
    """The common part of their errors; '' without an error."""
    example: str
    """The id of one of them."""

    @property
    def text(self) -> str:
        """The line as one sentence."""
        error = f": {self.reason}" if self.reason else ""
        return (
            f"{self.count:,} × {self.event_type} for {self.destination or 'any route'}{error}, such as {self.example}"
        )


class Summary(NamedTuple):
    """What was selected, the largest groups first."""

    lines: list[SummaryLine]
    further: int = 0
    """How many groups `lines` leaves out."""
    unexamined: int = 0
    """How many events were selected after the first `EXAMINED`, and are in no line."""

    @property
    def texts(self) -> list[str]:
        """The lines as sentences."""
        texts = [line.text for line in self.lines]
        if self.further:
            texts.append(f"and {plural(self.further, 'more group')}")
        if self.unexamined:
            texts.append(f"among the first {EXAMINED:,} events; {self.unexamined:,} more match")
        return texts


NOTHING_SELECTED: Final = Summary([])


async def digest_of(selected: Iterable[object]) -> str:
    """Return what identifies selected events: a confirmation is for these, not for as many others. In a thread, because
    many events would block the event loop."""
    return await asyncio.to_thread(_digest_of, selected)


def _digest_of(selected: Iterable[object]) -> str:
    digest = blake2b(digest_size=12)
    for text in sorted(map(repr, selected)):
        # No `repr` contains a newline: without a separator, 1 and 23 would equal 12 and 3.
        digest.update(f"{text}\n".encode())
    return digest.hexdigest()


class SummaryBuilder:
    """Counts selected events by type, destination and reason."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str, str], SummaryLine] = {}
        self._added = 0

    async def add(self, selected: Sequence[tuple[SelectedEvent, str | None]]) -> None:
        """Count events with their errors; in a thread, because a thousand long errors would block the event loop."""
        examined = selected[: max(0, EXAMINED - self._added)]
        self._added += len(selected)
        await asyncio.to_thread(self._add, examined)

    def _add(self, selected: Iterable[tuple[SelectedEvent, str | None]]) -> None:
        for event, error in selected:
            key = (event.event_type, event.destination, reason_of(error) if error else "")
            known = self._lines.get(key)
            self._lines[key] = SummaryLine(1 + (known.count if known else 0), *key, event.event_id)

    def summary(self) -> Summary:
        lines = sorted(self._lines.values(), reverse=True)
        return Summary(lines[:LINES], len(lines[LINES:]), max(0, self._added - EXAMINED))
