"""Every setting of when a rejected event is sent again, and how long that may go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pillarbox.core.retry import ExponentialBackoff, FixedDelay, Jitter, NoRetry, RetryPolicy
from pillarbox.ops.settings.describing import key
from pillarbox.ops.settings.kinds import Choice, Number, Span, Whole


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """When an event that was rejected is sent again."""

    policy: Literal["exponential", "constant", "none"] = key(
        Choice(("exponential", "constant", "none")),
        "`exponential`: base, then longer by the multiplier, up to max; `constant`: always base; `none`: one send",
        default="exponential",
    )
    base: str = key(
        Span(),
        "the first wait; `constant`: every wait",
        default="10s",
        formerly={
            "outbox.publisher.initial-retry-delay": "",
            "outbox.processor.base-retry-delay-seconds": "seconds there",
            "min_backoff": "",
        },
        only_for=("exponential", "constant"),
    )
    multiplier: float = key(
        Number(),
        "by which each wait is longer than the one before",
        default=2,
        formerly={"backoff_multiplier": ""},
        only_for=("exponential",),
    )
    max: str = key(
        Span(),
        "the longest wait",
        default="1h",
        formerly={
            "outbox.publisher.max-retry-delay": "",
            "outbox.processor.max-retry-delay-seconds": "seconds there",
            "max_backoff": "",
        },
        only_for=("exponential",),
    )
    jitter: Jitter = key(
        Choice(("none", "full", "additive")),
        "chance: `full` takes anything up to the wait, `additive` adds up to base",
        default="full",
        only_for=("exponential",),
    )
    max_attempts: int = key(
        Whole(),
        "sends, the first one included; `0` = no limit",
        default=11,
        formerly={
            "outbox.publisher.max-retries": "one more: the first send counts here",
            "outbox.processor.max-attempts": "",
            "max_retries": "one more: the first send counts here",
        },
        only_for=("exponential", "constant"),
    )

    def make_policy(self) -> RetryPolicy:
        """Raises ConfigurationError."""
        match self.policy:
            case "none":
                return NoRetry()
            case "constant":
                return FixedDelay(wait=self.base, max_attempts=self.max_attempts)
            case "exponential":
                return ExponentialBackoff(
                    base=self.base,
                    multiplier=self.multiplier,
                    max=self.max,
                    jitter=self.jitter,
                    max_attempts=self.max_attempts,
                )

    def horizon(self) -> float:
        """Seconds from the first send to the last, at the longest."""
        sends, policy = (1 if self.policy == "none" else self.max_attempts), self.make_policy()
        if sends == 0:
            return float("inf")
        waits = [policy.delay(attempt, _Unlucky()) or 0.0 for attempt in range(1, min(sends, _MOST_SUMMED))]
        return sum(waits) + max(0, sends - _MOST_SUMMED) * (waits[-1] if waits else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSettings:
    """How often an unavailable destination is probed."""

    probe: str = key(Span(), "the delay before the first probe of an unavailable destination", default="1s")
    max: str = key(Span(), "the longest delay between two probes; the first success closes the breaker", default="2s")
    jitter: Jitter = key(
        Choice(("none", "full", "additive")),
        "chance: `full` takes anything up to the delay, `additive` adds up to `probe`, `none` probes on time",
        default="full",
    )


_MOST_SUMMED = 1000


class _Unlucky:
    """Chance at its worst."""

    def random(self) -> float:
        return 1.0
