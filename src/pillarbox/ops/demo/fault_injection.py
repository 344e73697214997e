"""Falsifies the ledger of one receiver, to show that the verification detects each kind of fault."""

from __future__ import annotations

from itertools import count

from pillarbox.core.event import uuid7
from pillarbox.ops.demo.environment import Fault
from pillarbox.ops.demo.ledger import Append, DemoLedgerEntry

ONE_IN = 25


def with_fault(fault: Fault | None, receiver: str, append: Append) -> Append:
    """Return `append` with the fault injected into what this receiver handled; other entries are written unchanged."""
    if fault is None:
        return append
    falsify = {"loss": _lose, "reordering": _reorder, "phantom": _add_phantoms, "duplicates": _duplicate}[fault](append)
    return lambda entry: (falsify if entry.receiver == receiver and entry.status == "handled" else append)(entry)


def _lose(append: Append) -> Append:
    numbers = count(1)

    def falsify(entry: DemoLedgerEntry) -> None:
        if next(numbers) % ONE_IN:
            append(entry)

    return falsify


def _reorder(append: Append) -> Append:
    """Write the first step of every order after its second."""
    seen: set[str] = set()
    delayed: dict[str, DemoLedgerEntry] = {}

    def falsify(entry: DemoLedgerEntry) -> None:
        if entry.order not in seen:
            seen.add(entry.order)
            delayed[entry.order] = entry
            return
        append(entry)
        if (first := delayed.pop(entry.order, None)) is not None:
            append(first)

    return falsify


def _add_phantoms(append: Append) -> Append:
    numbers = count(1)

    def falsify(entry: DemoLedgerEntry) -> None:
        append(entry)
        if next(numbers) % ONE_IN == 0:
            append(entry._replace(event_id=uuid7()))

    return falsify


def _duplicate(append: Append) -> Append:
    def falsify(entry: DemoLedgerEntry) -> None:
        append(entry)
        append(entry)

    return falsify
