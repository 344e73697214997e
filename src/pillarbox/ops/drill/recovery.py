"""How long the relays took to recover from each fault, and the latency of events over time, from the ledgers alone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

FOLLOWING = 0.2
"""Seconds after a fault whose commits count, too: they include events for the lanes that have no owner."""


class LatencyPoint(NamedTuple):
    """The events that were committed in one interval of a run."""

    at: float
    """Seconds since the start."""
    events: int
    longest: float
    """Seconds from the commit to the first arrival."""


class DeliveryTimes:
    """When events were committed and when they first arrived; monotonic times."""

    def __init__(self, committed: Mapping[str, float], received: Iterable[tuple[float, str]]) -> None:
        first: dict[str, float] = {}
        for at, event_id in received:
            first.setdefault(event_id, at)
        pairs = sorted((at, first[event_id]) for event_id, at in committed.items() if event_id in first)
        self._committed = [at for at, _ in pairs]
        self._received = [at for _, at in pairs]
        self._latest = list(accumulate(self._received, max))

    def recovery(self, fault: float) -> float:
        """Return the seconds from a fault until everything that was committed by then, or just after, had arrived."""
        known = bisect_right(self._committed, fault + FOLLOWING)
        return max(0.0, self._latest[known - 1] - fault) if known else 0.0

    def latencies(self, began: float, ended: float, *, points: int = 200) -> list[LatencyPoint]:
        """Divide the run into intervals; return the count and the longest latency of each."""
        width = max(ended - began, 0.001) / points
        counts, longest = [0] * points, [0.0] * points
        for committed, received in zip(self._committed, self._received, strict=True):
            number = min(points - 1, max(0, int((committed - began) / width)))
            counts[number] += 1
            longest[number] = max(longest[number], received - committed)
        return [LatencyPoint(round(n * width, 3), counts[n], round(longest[n], 4)) for n in range(points)]


def percentile(values: Sequence[float], part: float) -> float:
    """Return the smallest value that is not exceeded by this part of all values. Raises IndexError without values."""
    ordered = sorted(values)
    return ordered[max(0, -int(-part * len(ordered) // 1) - 1)]
