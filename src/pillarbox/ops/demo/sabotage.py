"""A receiver that cheats in the ledger, each way as a real fault would look: so that a verdict is seen to fail."""

from __future__ import annotations

from itertools import count

from pillarbox.core.event import uuid7
from pillarbox.ops.demo.ledger import Entry, Note
from pillarbox.ops.demo.scene import Sabotage

ONE_IN = 25


def cheating(how: Sabotage | None, receiver: str, note: Note) -> Note:
    """`note`, with what this receiver handled written down wrongly; everybody else stays honest."""
    if how is None:
        return note
    cheat = {"loss": _forget, "disorder": _swap, "phantom": _invent, "repeats": _repeat}[how](note)
    return lambda entry: (cheat if entry.receiver == receiver and entry.what == "handled" else note)(entry)


def _forget(note: Note) -> Note:
    numbers = count(1)

    def cheat(entry: Entry) -> None:
        if next(numbers) % ONE_IN:
            note(entry)

    return cheat


def _swap(note: Note) -> Note:
    """Every order's first step is written down after its second."""
    seen: set[str] = set()
    kept: dict[str, Entry] = {}

    def cheat(entry: Entry) -> None:
        if entry.order not in seen:
            seen.add(entry.order)
            kept[entry.order] = entry
            return
        note(entry)
        if (first := kept.pop(entry.order, None)) is not None:
            note(first)

    return cheat


def _invent(note: Note) -> Note:
    numbers = count(1)

    def cheat(entry: Entry) -> None:
        note(entry)
        if next(numbers) % ONE_IN == 0:
            note(entry._replace(event_id=uuid7()))

    return cheat


def _repeat(note: Note) -> Note:
    def cheat(entry: Entry) -> None:
        note(entry)
        note(entry)

    return cheat
