"""How many messages a destination may get: a bucket that fills with time and is emptied by sending.

In any stretch of time no more is sent than what fitted in the bucket at its beginning and what flowed in since.
"""

from __future__ import annotations

from pillarbox.core.errors import ConfigurationError

_A_MOMENT = 1e-6  # rounding must not end a wait a hair too early


class RateLimit:
    """`rate` messages a second, at most `burst` of them at once (a second's worth, and at least one, by default).

    Raises ConfigurationError for a rate that lets nothing through, or a burst that is less than one message.
    """

    def __init__(self, rate: float, burst: float | None = None) -> None:
        if not 0 < rate < float("inf"):
            raise ConfigurationError(f"rate_limit is {rate} per second: more than zero, or pause the destination")
        if burst is not None and not 1 <= burst < float("inf"):
            raise ConfigurationError(f"the burst of a rate_limit is {burst}: at least one message")
        self._whole_rate = rate
        self._whole_burst = max(1.0, rate) if burst is None else burst
        self._relays = 1
        self._filled = self._whole_burst
        self._at: float | None = None

    def may_send(self, now: float) -> int:
        """How many messages may go now."""
        self._fill(now)
        return max(0, int(self._filled))

    def sent(self, count: int, now: float) -> None:
        """So many went; more than were allowed are a debt."""
        self._fill(now)
        self._filled -= count

    def wait(self, now: float) -> float:
        """Seconds until one more may go; 0: now."""
        if self.may_send(now):
            return 0.0
        return (1 - self._filled) / self._rate + _A_MOMENT

    def share(self, relays: int) -> None:
        """Take only this relay's part of the limit; what flowed in since the last look counts at the new rate."""
        self._relays = max(1, relays)

    @property
    def _rate(self) -> float:
        return self._whole_rate / self._relays

    @property
    def _burst(self) -> float:
        return max(1.0, self._whole_burst / self._relays)

    def _fill(self, now: float) -> None:
        elapsed = 0.0 if self._at is None else max(0.0, now - self._at)
        self._at = now if self._at is None else max(now, self._at)
        self._filled = min(self._burst, self._filled + elapsed * self._rate)
