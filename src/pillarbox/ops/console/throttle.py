"""Guessing passwords is slow, and locks nobody out but whoever guesses.

What must stay true: a right password from an address without failures gets in at once, whatever others try. Somebody
who fails ten times within a minute with one name from one address has to wait for a minute. An address that fails with
many names, and a name that fails from many addresses, are slowed down: each try takes longer, up to a few seconds.
"""

from __future__ import annotations

from collections import OrderedDict

from pillarbox.core.clock import Clock, SystemClock

TRIES = 10
"""Failures of one name from one address, after which it is closed."""
SLOW = 20
"""Failures of one address, whatever the names, and of one name, wherever from, after which tries take longer."""
WINDOW = 60.0
"""Seconds in which so many tries may fail."""
SLOWEST_ADDRESS, SLOWEST_NAME = 5.0, 2.0
"""Seconds that a try takes at most. One for a name may be the user's own: they wait less."""
_STEP = 0.1
"""Seconds for each failure beyond."""
_REMEMBERED = 10_000
_COUNTED = 200

Whose = tuple[str | None, str | None]
"""An address and a name; None: any."""


class Throttle:
    """Counts failures by address and name; it forgets the oldest of too many."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._failures: OrderedDict[Whose, list[float]] = OrderedDict()

    def closed(self, *, address: str, name: str) -> bool:
        """Whether this name has to wait for a minute at this address."""
        return self._count((address, name)) >= TRIES

    def suspects(self, address: str) -> bool:
        """Whether somebody seems to guess from there."""
        return self._count((address, None)) >= TRIES

    def delay(self, *, address: str, name: str) -> float:
        """Seconds that the next try has to take."""
        for_address = min(SLOWEST_ADDRESS, _STEP * max(0, self._count((address, None)) - SLOW))
        if not self.suspects(address):
            return for_address
        # A name that others try as well; who comes from an address of good standing does not wait for them.
        return max(for_address, min(SLOWEST_NAME, _STEP * max(0, self._count((None, name)) - SLOW)))

    def failed(self, *, address: str, name: str) -> None:
        for whose in ((address, name), (address, None), (None, name)):
            self._failures[whose] = [*self._recent(whose), self._clock.monotonic()][-_COUNTED:]
            self._failures.move_to_end(whose)
        while len(self._failures) > _REMEMBERED:
            self._failures.popitem(last=False)

    def forget(self, *, address: str, name: str) -> None:
        """They got in. What others tried from there stays counted, else whoever has a login could guess on."""
        self._failures.pop((address, name), None)

    def _count(self, whose: Whose) -> int:
        return len(self._recent(whose))

    def _recent(self, whose: Whose) -> list[float]:
        begin = self._clock.monotonic() - WINDOW
        return [at for at in self._failures.get(whose, ()) if at > begin]
