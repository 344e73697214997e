"""When relays lost a lease, a connection or a destination, and how many of these losses no planned outage explains.

A relay may send again what it had in flight at each loss. It reports the same loss at every retry: only the first one
after a recovery counts.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pillarbox.core.observations import BreakerChanged, LeaseLost, Observation, TransportConnected, TransportFailed
from pillarbox.ops.drill.ledger import INTERRUPTIONS, AppendedFile
from pillarbox.ops.drill.schedule import CRASHES, OUTAGES

if TYPE_CHECKING:
    from pillarbox.ops.drill.schedule import ExecutedFault

LEASE_LOST = "lease lost"
DOWN = "down"
UP = "up"


class Interruption(NamedTuple):
    """A relay lost its lease, its connection or its destination."""

    at: float
    """Monotonic time."""
    relay: str


class InterruptionLog:
    """Appends what a relay loses and regains."""

    def __init__(self, folder: Path, relay: str) -> None:
        self._file = AppendedFile(folder / INTERRUPTIONS)
        self._relay = relay

    def observe(self, observation: Observation) -> None:
        """Append what lets a relay send again what it had in flight, besides a crash, and when that is over."""
        match observation:
            case LeaseLost():
                self._add(LEASE_LOST)
            case TransportFailed():
                self._add(DOWN, "transport")
            case TransportConnected():
                self._add(UP, "transport")
            case BreakerChanged(state="open"):
                self._add(DOWN, "destination")
            case BreakerChanged(state="closed"):
                self._add(UP, "destination")
            case _:
                return

    def _add(self, what: str, of: str = "") -> None:
        self._file.append(f"{time.monotonic():.6f}\t{self._relay}\t{what}\t{of}")


def read_interruptions(folder: Path) -> list[Interruption]:
    """Return the interruptions of all relays in the order of time."""
    if not (folder / INTERRUPTIONS).exists():
        return []
    lines = (folder / INTERRUPTIONS).read_text(encoding="utf-8").splitlines()
    return find_interruptions(line.split("\t") for line in lines)


def find_interruptions(lines: Iterable[Sequence[str]]) -> list[Interruption]:
    """Return the interruptions among (time, relay, what, of what): a relay that is down already is not interrupted."""
    found: list[Interruption] = []
    down: defaultdict[str, set[str]] = defaultdict(set)
    for at, relay, what, of in lines:
        if what == LEASE_LOST or (what == DOWN and not down[relay]):
            found.append(Interruption(float(at), relay))
        if what == DOWN:
            down[relay].add(of)
        elif what == UP:
            down[relay].discard(of)
    return sorted(found)


def unplanned(interruptions: Iterable[Interruption], faults: Sequence[ExecutedFault]) -> list[Interruption]:
    """Return the interruptions that were not caused by the last fault before them.

    An outage interrupts every relay, and a crash its victim. While the broker cannot route messages, each relay counts
    once.
    """
    began = [fault.began for fault in faults]
    found: list[Interruption] = []
    unroutable: set[tuple[int, str]] = set()
    for one in interruptions:
        number = bisect_right(began, one.at) - 1
        fault = faults[number] if number >= 0 else None
        if fault is not None:
            if fault.kind in OUTAGES or (fault.kind in CRASHES and fault.victim == one.relay):
                continue
            if fault.kind == "unroutable":
                if (number, one.relay) in unroutable:
                    continue
                unroutable.add((number, one.relay))
        found.append(one)
    return found
