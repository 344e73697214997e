"""Guessing passwords is slow: after a few failures whoever tries that name from that address has to wait.

What must stay true: one person's failures lock nobody else out. Behind a proxy everybody has the same address, so that
an address, and a name from all addresses together, may fail far more often.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from pillarbox.core.clock import Clock, SystemClock

TRIES = 10
"""Of one name from one address."""
MANY = 200
"""Of one address, whatever the names, and of one name, wherever from."""
WINDOW = 60.0
"""Seconds in which so many tries may fail."""
_REMEMBERED = 10_000

Whose = tuple[str | None, str | None]
"""An address and a name; None: any."""


class Throttle:
    """Counts failures by address and name; it forgets the oldest of too many."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._failures: OrderedDict[Whose, list[float]] = OrderedDict()

    def closed(self, *, address: str, name: str) -> bool:
        """Whether they have to wait."""
        return any(len(self._recent(whose)) >= most for whose, most in _bounds(address, name))

    def failed(self, *, address: str, name: str) -> None:
        for whose, most in _bounds(address, name):
            self._failures[whose] = [*self._recent(whose), self._clock.monotonic()][-most:]
            self._failures.move_to_end(whose)
        while len(self._failures) > _REMEMBERED:
            self._failures.popitem(last=False)

    def forget(self, *, address: str, name: str) -> None:
        """They got in. What others tried from there stays counted, else whoever has a login could guess on."""
        self._failures.pop((address, name), None)

    def _recent(self, whose: Whose) -> list[float]:
        begin = self._clock.monotonic() - WINDOW
        return [at for at in self._failures.get(whose, ()) if at > begin]


def _bounds(address: str, name: str) -> Iterator[tuple[Whose, int]]:
    yield (address, name), TRIES
    yield (address, None), MANY
    yield (None, name), MANY
