"""When to retry: the protocol of a retry policy, and the pauses of reconnect loops.

`attempt` is the number of failed sends that count, from 1. A policy returns the delay before the next send, or None
after the last attempt. `pillarbox.retry_policies` has the policies of the library.
"""

from __future__ import annotations

from typing import Protocol

from pillarbox.core.clock import RandomSource

FIRST_RECONNECT_PAUSE = 0.1
"""Seconds before the second attempt to reach a server."""
MAX_RECONNECT_PAUSE = 2.0
"""Seconds between two attempts at most; with it, delivery resumes within 3 s after a server is back."""


class RetryPolicy(Protocol):
    """Computes the delay of a retry; must be a pure function."""

    def delay_after(self, attempt: int, rng: RandomSource) -> float | None:
        """Seconds until the next send after `attempt` failed ones; None: dead-letter the event."""
        ...


class Backoff:
    """The pauses of one reconnect loop, to a database or a broker: all of them use this class.

    A pause doubles from `first` up to `max_pause` seconds. Jitter takes off up to half, so that many processes do not
    reconnect at once. `max_pause` is short by default: probes are cheap, and delivery resumes soon after an outage.
    """

    def __init__(
        self, rng: RandomSource, *, first: float = FIRST_RECONNECT_PAUSE, max_pause: float = MAX_RECONNECT_PAUSE
    ) -> None:
        self._rng = rng
        self._first = min(first, max_pause)
        self._max_pause = max_pause
        self._pause = self._first

    def next(self) -> float:
        """Seconds to pause now, after another failure."""
        pause, self._pause = self._pause, min(self._max_pause, self._pause * 2)
        return pause * (0.5 + self._rng.random() / 2)

    def reset(self) -> None:
        """An attempt succeeded: the next outage begins with a short pause."""
        self._pause = self._first
