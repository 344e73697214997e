"""The time of the server, by which a stream is trimmed: the ids of its entries are times of that clock.

The clock of this host may be wrong or jump, and entries that are deleted too early are lost.
"""

from __future__ import annotations

from collections.abc import Callable

from pillarbox.core.clock import SystemClock
from pillarbox.core.errors import UnavailableError

READ_EVERY = 60.0
"""Seconds after which the time is read again: the clock of the server may have been set."""


class ServerClock:
    """The time that the server last told, carried forward by the time that has elapsed here.

    It is never ahead of the server's clock by more than that clock was set back since: the reply to TIME was on its
    way for a while.
    """

    def __init__(self, elapsed: Callable[[], float] = SystemClock.monotonic) -> None:
        self._elapsed = elapsed
        self._read_at: float | None = None
        self._told_ms = 0.0
        self._refusal: str | None = None

    @property
    def is_stale(self) -> bool:
        return self._read_at is None or self._elapsed() - self._read_at >= READ_EVERY

    def tell(self, seconds: int, microseconds: int) -> None:
        """Note the reply to TIME, which has just arrived."""
        self._told_ms = seconds * 1000 + microseconds / 1000
        self._read_at, self._refusal = self._elapsed(), None

    def refuse(self, reason: str) -> None:
        """Note that the server does not tell its time."""
        self._read_at, self._refusal = self._elapsed(), reason

    def now_ms(self) -> int:
        """Milliseconds since 1970. Raises UnavailableError if the server does not tell its time."""
        if self._refusal is not None or self._read_at is None:
            raise UnavailableError(
                f"max_age cannot be applied: Redis does not tell its time ({self._refusal or 'not read yet'}); grant "
                "+time to the user, or set max_length instead"
            )
        return int(self._told_ms + (self._elapsed() - self._read_at) * 1000)
