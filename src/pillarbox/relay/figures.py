"""What this relay carried since it last said so: counted as verdicts are written, told every ten seconds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from pillarbox.core.outcome import Dead, Delivered, Retry, Verdict
from pillarbox.core.stats import Carried


class Figures:
    """Counts by destination, until they are taken."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, Carried] = defaultdict(Carried)

    def count(self, verdicts: Iterable[Verdict], now: datetime) -> None:
        for message, outcome, destination, _ in verdicts:
            match outcome:
                case Delivered():
                    self._counts[destination].delivered((now - message.recorded_at).total_seconds())
                case Retry():
                    self._counts[destination].retried += 1
                case Dead():
                    self._counts[destination].dead += 1

    def take(self) -> dict[str, Carried]:
        taken, self._counts = dict(self._counts), defaultdict(Carried)
        return taken

    def put_back(self, taken: Mapping[str, Carried]) -> None:
        """What could not be told is told the next time."""
        for destination, carried in taken.items():
            self._counts[destination].add(carried)
