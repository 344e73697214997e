"""What this relay carried since it last said so: counted as verdicts are written, told every ten seconds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from pillarbox.core.outcome import DELIVERED, Dead, Retry, Verdict
from pillarbox.core.stats import Carried, bucket


class Figures:
    """Counts by destination, until they are taken."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, Carried] = defaultdict(Carried)

    def count(self, verdicts: Iterable[Verdict], now: datetime) -> None:
        recorded: defaultdict[str, list[datetime]] = defaultdict(list)
        for message, outcome, destination, _ in verdicts:
            if outcome is DELIVERED:
                recorded[destination].append(message.recorded_at)
            elif isinstance(outcome, Retry):
                self._counts[destination].retried += 1
            elif isinstance(outcome, Dead):
                self._counts[destination].dead += 1
        for destination, times in recorded.items():
            carried = self._counts[destination]
            shortest, longest = (now - max(times)).total_seconds(), (now - min(times)).total_seconds()
            if bucket(shortest) == bucket(longest):
                carried.delivered(shortest, len(times))
            else:
                for at in times:
                    carried.delivered((now - at).total_seconds())

    def take(self) -> dict[str, Carried]:
        taken, self._counts = dict(self._counts), defaultdict(Carried)
        return taken

    def put_back(self, taken: Mapping[str, Carried]) -> None:
        """What could not be told is told the next time."""
        for destination, carried in taken.items():
            self._counts[destination].add(carried)
