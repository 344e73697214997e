"""When to try again: pure arithmetic, chance injected. Whether to try again is the verdict's business.

`attempt` is the number of charged sends that failed so far, from 1; a policy answers how long to wait, or None: give
up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from pillarbox.core.clock import Chance, Duration, seconds
from pillarbox.core.errors import ConfigurationError

Jitter = Literal["none", "full", "additive"]

FIRST_PAUSE = 0.1
"""Seconds before the second attempt to reach a server."""
LONGEST_PAUSE = 2.0
"""Seconds between two attempts at most; with it, delivery resumes within 3 s after a server is back."""


class RetryPolicy(Protocol):
    """One pure function."""

    def delay(self, attempt: int, chance: Chance) -> float | None:
        """Seconds until the next send after `attempt` failed ones; None: no more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialBackoff:
    """min(max, base · multiplier^(attempt - 1)), and jitter: none, full (anything from 0 up to that), or additive
    (0 … base on top, after the cap). `max_attempts` counts all sends; 0 = no limit."""

    base: Duration = "10s"
    multiplier: float = 2
    max: Duration = "1h"
    jitter: Jitter = "full"
    max_attempts: int = 11

    def __post_init__(self) -> None:
        _check_attempts(self.max_attempts)
        if not 1 <= self.multiplier < float("inf"):
            raise ConfigurationError(f"retry.multiplier is {self.multiplier}: at least 1, or waits would shrink")
        if self.jitter not in ("none", "full", "additive"):
            raise ConfigurationError(f'retry.jitter is "none", "full" or "additive", not {self.jitter!r}')
        if seconds(self.base, field="retry.base") > seconds(self.max, field="retry.max"):
            raise ConfigurationError(
                f"retry.base {self.base} is longer than retry.max {self.max}: raise max or lower base"
            )

    def delay(self, attempt: int, chance: Chance) -> float | None:
        if 0 < self.max_attempts <= attempt:
            return None
        base, wait = seconds(self.base), self._wait(attempt)
        match self.jitter:
            case "full":
                return wait * chance.random()
            case "additive":
                return wait + base * chance.random()
            case _:
                return wait

    def _wait(self, attempt: int) -> float:
        base, cap = seconds(self.base), seconds(self.max)
        try:
            return min(cap, base * float(self.multiplier) ** (attempt - 1))
        except OverflowError:
            return cap if base else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedDelay:
    """Always the same wait. `max_attempts` counts all sends; 0 = no limit."""

    wait: Duration = "1s"
    max_attempts: int = 0

    def __post_init__(self) -> None:
        _check_attempts(self.max_attempts)
        seconds(self.wait, field="retry.base")

    def delay(self, attempt: int, chance: Chance) -> float | None:
        return None if 0 < self.max_attempts <= attempt else seconds(self.wait)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRetry:
    """One send, then give up."""

    def delay(self, attempt: int, chance: Chance) -> float | None:
        return None


def _check_attempts(number: object) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ConfigurationError(f"retry.max_attempts is {number!r}: it counts sends, and 0 means no limit")


class Backoff:
    """The pauses of one reconnect loop, to a database or a broker: all of them use this class.

    A pause doubles from `first` up to `longest` seconds. Jitter takes off up to half, so that many processes do not
    reconnect at once. `longest` is short by default: probes are cheap, and delivery resumes soon after an outage.
    """

    def __init__(self, chance: Chance, *, first: float = FIRST_PAUSE, longest: float = LONGEST_PAUSE) -> None:
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
