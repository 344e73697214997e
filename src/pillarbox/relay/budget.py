"""How many bytes the looks of a round may bring, so that what is in flight stays within its bound.

A look brings at most a quarter of the bound, and never more than `MAX_BYTES`. A round begins only if two such looks
fit: one for everything that waits, one for what is ready. A message that is larger than a look comes alone, once
nothing is in flight; until then no round begins, so that others cannot keep it out for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pillarbox.core.fetch import MAX_BYTES, Fetched, Look
from pillarbox.relay.in_flight import InFlight
from pillarbox.relay.sorting import Seen

MOST_ROWS = 1_000_000


class Large(NamedTuple):
    """A message that is larger than a look: which kind of look met it, in which lane, and for which destination."""

    look: type[Look]
    lane: int
    destination: str


class Budget:
    """The bytes of one relay."""

    def __init__(self, most: int, in_flight: InFlight) -> None:
        self._most = most
        self._in_flight = in_flight
        self.per_look = min(MAX_BYTES, max(1, most // 4))
        self._waiting = 0
        self._brought = 0
        self.rows = MOST_ROWS
        """How many messages a look should ask for: about twice as many as fit lately, because the database has to weigh
        all that it is asked for."""
        self.large: Large | None = None
        """What the next round is for; None: for everything."""

    def begin(self) -> bool:
        """Begin a round; False: there is no room for one now."""
        if len(self._in_flight) and (self.large is not None or self._most - self._in_flight.bytes < 2 * self.per_look):
            return False
        self._waiting = self._brought = 0
        return True

    @property
    def left(self) -> int:
        """What the looks at what waits may still bring in this round."""
        return self.per_look - self._waiting

    @property
    def alone(self) -> bool:
        """Whether the first message of a look may be larger than it: nothing else is in flight."""
        return not len(self._in_flight) and not self._brought

    def brought(self, look: Look, found: Fetched, size: int, *, waited: bool) -> None:
        """Count what a look brought, of that size, and note what it could not bring."""
        self._brought += size
        if waited:
            self._waiting += size
        self.rows = min(MOST_ROWS, 2 * max(2, len(found) if found.left_out is not None else self.rows))
        if found.left_out is not None and not found and self.large is None:
            self.large = Large(type(look), found.left_out.lane, found.left_out.destination)

    def fitting(self, seen: Sequence[Seen]) -> int:
        """How many of these, which this round brought, fit beside what is in flight, from the first on."""
        free = self._most - self._in_flight.bytes
        if self._brought <= free:
            return len(seen)
        for number, one in enumerate(seen):
            free -= one.size
            if free < 0 and (number or len(self._in_flight)):
                return number
        return len(seen)
