"""The retry policies that the library has; each is a pure function of the attempt, with injected randomness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Self

from pillarbox.core.clock import Duration, RandomSource, seconds
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
from pillarbox.settings.shared import PresetName, check_preset

Jitter = Literal["none", "full", "additive"]
MaxAttempts = int | Literal["unlimited"]

_PRESETS: Mapping[PresetName, tuple[int, Duration]] = MappingProxyType(
    {"development": (3, "1m"), "staging": (5, "5m"), "production": (10, "10m"), "high-volume": (10, "10m")}
)
"""Retries and longest delay."""


def _max_attempts() -> Any:
    return setting(
        11,
        Whole("sends", words=("unlimited",)),
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
    """min(max_delay, base · multiplier^(attempt - 1)), with jitter.

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
    max_delay: Duration = setting(
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
    max_attempts: MaxAttempts = _max_attempts()

    @classmethod
    def preset(cls, name: PresetName) -> Self:
        """The retry policy of a preset; `RelayConfig.preset` has its other values. Raises ConfigurationError."""
        retries, longest = _PRESETS[check_preset(name)]
        return cls(base="1s", multiplier=2, max_delay=longest, jitter="none", max_attempts=retries + 1)

    def __post_init__(self) -> None:
        check_settings(self)
        if seconds(self.base) > seconds(self.max_delay):
            raise InvalidSettingError(
                self,
                "{base} is {base.value}: it must not be longer than {max_delay} ({max_delay.value}); raise max_delay "
                "or lower base",
            )

    def delay_after(self, attempt: int, rng: RandomSource) -> float | None:
        if _is_last(attempt, self.max_attempts):
            return None
        base, wait = seconds(self.base), self._wait(attempt)
        match self.jitter:
            case "full":
                return wait * rng.random()
            case "additive":
                return wait + base * rng.random()
            case _:
                return wait

    def _wait(self, attempt: int) -> float:
        base, cap = seconds(self.base), seconds(self.max_delay)
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

    delay: Duration = setting("1s", Span(zero="retry at once"), "The delay before every retry.")
    max_attempts: MaxAttempts = _max_attempts()

    def __post_init__(self) -> None:
        check_settings(self)

    def delay_after(self, attempt: int, rng: RandomSource) -> float | None:
        return None if _is_last(attempt, self.max_attempts) else seconds(self.delay)


def _is_last(attempt: int, max_attempts: MaxAttempts) -> bool:
    return max_attempts != "unlimited" and attempt >= max_attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRetry:
    """No retries: an event whose first send fails is dead-lettered."""

    def delay_after(self, attempt: int, rng: RandomSource) -> float | None:
        return None
