"""The pause between two attempts to reach a database or a broker: one rule for every reconnect loop.

It doubles from `first` up to `longest`. Jitter takes off up to half, so that many processes do not reconnect at once.
Probes are cheap and an outage that is over must not last longer for us: hence the short default of `longest`.
"""

from __future__ import annotations

from pillarbox.core.clock import Chance

FIRST = 0.1
LONGEST = 2.0
"""Seconds; with it, events flow again within 3 s after a database or a broker is back."""


class Backoff:
    """The pauses of one reconnect loop."""

    def __init__(self, chance: Chance, *, first: float = FIRST, longest: float = LONGEST) -> None:
        self._chance = chance
        self._first = min(first, longest)
        self._longest = longest
        self._pause = self._first

    def next(self) -> float:
        """Seconds to pause now, after another failure."""
        pause, self._pause = self._pause, min(self._longest, self._pause * 2)
        return pause * (0.5 + self._chance.random() / 2)

    def reset(self) -> None:
        """An attempt succeeded: the next outage begins with a short pause."""
        self._pause = self._first
