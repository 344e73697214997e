"""Slows down password guessing without locking out other users.

Invariants: a correct password from an address without failures is accepted at once. Ten failures within a minute with
one name from one address lock that pair for a minute. An address that fails with many names, and a name that fails from
many addresses, are slowed down: each attempt takes longer, up to a few seconds.
"""

from __future__ import annotations

from collections import OrderedDict

from pillarbox.core.clock import Clock, SystemClock

ATTEMPTS = 10
"""Failures of one name from one address after which the pair is locked."""
SLOW = 20
"""Failures of one address with any name, and of one name from any address, after which attempts take longer."""
FAILURE_WINDOW = 60.0
"""Seconds in which failures are counted."""
SLOWEST_ADDRESS, SLOWEST_NAME = 5.0, 2.0
"""Maximum delay of an attempt in seconds. An attempt with a guessed name may come from its user, who waits less."""
_STEP = 0.1
"""Seconds for each further failure."""
_MOST_PAIRS = 10_000
_MOST_FAILURES = 200

FailureKey = tuple[str | None, str | None]
"""An address and a name; None: any."""


class Throttle:
    """Counts failures by address and name, of a limited number of pairs."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._failures: OrderedDict[FailureKey, list[float]] = OrderedDict()

    def is_locked(self, *, address: str, name: str) -> bool:
        """Whether this name is locked at this address."""
        return self._count((address, name)) >= ATTEMPTS

    def is_guessing(self, address: str) -> bool:
        """Whether an address has many failures."""
        return self._count((address, None)) >= ATTEMPTS

    def delay(self, *, address: str, name: str) -> float:
        """Return the delay of the next attempt in seconds."""
        for_address = min(SLOWEST_ADDRESS, _STEP * max(0, self._count((address, None)) - SLOW))
        if not self.is_guessing(address):
            return for_address
        # The name is attacked from other addresses; an address without failures is not delayed.
        return max(for_address, min(SLOWEST_NAME, _STEP * max(0, self._count((None, name)) - SLOW)))

    def add_failure(self, *, address: str, name: str) -> None:
        for key in ((address, name), (address, None), (None, name)):
            self._failures[key] = [*self._recent(key), self._clock.monotonic()][-_MOST_FAILURES:]
            self._failures.move_to_end(key)
        while len(self._failures) > _MOST_PAIRS:
            self._failures.popitem(last=False)

    def reset(self, *, address: str, name: str) -> None:
        """Reset the pair after a login. Other failures of the address count on: a user could guess other passwords."""
        self._failures.pop((address, name), None)

    def _count(self, key: FailureKey) -> int:
        return len(self._recent(key))

    def _recent(self, key: FailureKey) -> list[float]:
        begin = self._clock.monotonic() - FAILURE_WINDOW
        return [at for at in self._failures.get(key, ()) if at > begin]
