"""Guessing passwords is slow: after a few failures an address or a name has to wait, whoever is behind it."""

from __future__ import annotations

from collections import OrderedDict

from pillarbox.core.clock import Clock, SystemClock

TRIES = 10
WINDOW = 60.0
"""Seconds in which so many tries may fail."""
_REMEMBERED = 10_000


class Throttle:
    """Counts failures by address and by name; it forgets the oldest of too many."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._failures: OrderedDict[str, list[float]] = OrderedDict()

    def closed(self, *whose: str) -> bool:
        """Whether one of these has to wait."""
        return any(len(self._recent(one)) >= TRIES for one in whose)

    def failed(self, *whose: str) -> None:
        for one in whose:
            self._failures[one] = [*self._recent(one), self._clock.monotonic()]
            self._failures.move_to_end(one)
        while len(self._failures) > _REMEMBERED:
            self._failures.popitem(last=False)

    def forget(self, *whose: str) -> None:
        for one in whose:
            self._failures.pop(one, None)

    def _recent(self, one: str) -> list[float]:
        begin = self._clock.monotonic() - WINDOW
        return [at for at in self._failures.get(one, ()) if at > begin]
