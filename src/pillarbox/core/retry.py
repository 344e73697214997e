"""Retry policies and backoff: pure functions with injected randomness.

`attempt` is the number of failed sends that count, from 1. A policy returns the delay before the next send, or None
after the last attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pillarbox.core.clock import Chance, Duration, seconds
from pillarbox.settings import (
    Choice,
    InvalidSettingError,
    Number,
    Span,
    Whole,
    check_settings,
    documented,
    setting,
)

Jitter = Literal["none", "full", "additive"]

FIRST_PAUSE = 0.1
"""Seconds before the second attempt to reach a server."""
LONGEST_PAUSE = 2.0
"""Seconds between two attempts at most; with it, delivery resumes within 3 s after a server is back."""


class RetryPolicy(Protocol):
    """Computes the delay of a retry; must be a pure function."""

    def delay(self, attempt: int, chance: Chance) -> float | None:
        """Seconds until the next send after `attempt` failed ones; None: dead-letter the event."""
        ...


def _max_attempts() -> Any:
    return setting(
        11,
        Whole("sends", zero="no limit"),
        "How often an event is sent before it is dead-lettered, the first send included. By default an outage does not "
        "count.",
        formerly={
            "outbox.publisher.max-retries": "one more: the first send counts here",
            "outbox.processor.max-attempts": "",
            "max_retries": "one more: the first send counts here",
        },
    )


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialBackoff:
    """min(max, base · multiplier^(attempt - 1)), with jitter.

    Raises ConfigurationError for a value that cannot work.
    """

    base: Duration = setting(
        "10s",
        Span(zero="retry at once"),
        "The delay before the first retry.",
        formerly={
            "outbox.publisher.initial-retry-delay": "",
            "outbox.processor.base-retry-delay-seconds": "seconds there",
            "min_backoff": "",
        },
    )
    multiplier: float = setting(
        2,
        Number(1),
        "The factor from each delay to the next.",
        formerly={"backoff_multiplier": ""},
    )
    max: Duration = setting(
        "1h",
        Span(zero="retry at once"),
        "The longest delay.",
        formerly={
            "outbox.publisher.max-retry-delay": "",
            "outbox.processor.max-retry-delay-seconds": "seconds there",
            "max_backoff": "",
        },
    )
    jitter: Jitter = setting(
        "full",
        Choice.of(Jitter),
        "Randomness: `full` takes any delay from zero to the computed one, `additive` adds up to `base`, `none` adds "
        "nothing.",
    )
    max_attempts: int = _max_attempts()

    def __post_init__(self) -> None:
        check_settings(self)
        if seconds(self.base) > seconds(self.max):
            raise InvalidSettingError(
                self, "{base} is {base.value}: it must not be longer than {max} ({max.value}); raise max or lower base"
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


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class FixedDelay:
    """The same delay before every retry.

    Raises ConfigurationError for a value that cannot work.
    """

    wait: Duration = setting("1s", Span(zero="retry at once"), "The delay before every retry.")
    max_attempts: int = _max_attempts()

    def __post_init__(self) -> None:
        check_settings(self)

    def delay(self, attempt: int, chance: Chance) -> float | None:
        return None if 0 < self.max_attempts <= attempt else seconds(self.wait)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRetry:
    """No retries: an event whose first send fails is dead-lettered."""

    def delay(self, attempt: int, chance: Chance) -> float | None:
        return None


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
