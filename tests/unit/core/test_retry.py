"""Retry policies: common schedules, limits of the arithmetic, and invalid settings."""

from __future__ import annotations

import random
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.core.clock import RandomSource
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.retry import RetryPolicy
from pillarbox.retry_policies import ExponentialBackoff, FixedDelay, NoRetry

RNG = random.Random(7)


class Fixed:
    def __init__(self, number: float) -> None:
        self.number = number

    def random(self) -> float:
        return self.number


def sends(policy: RetryPolicy, *, most: int = 1000, rng: RandomSource = RNG) -> list[float]:
    """When a message that is never accepted is sent, on a virtual clock that starts at its first send."""
    times = [0.0]
    for attempt in count(1):
        delay = policy.delay_after(attempt, rng)
        if delay is None or len(times) == most:
            break
        times.append(times[-1] + delay)
    return times


def waits(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]


def test_ten_retries_from_ten_seconds_to_an_hour_are_eleven_attempts() -> None:
    times = sends(ExponentialBackoff(base="10s", max_delay="1h", jitter="none", max_attempts=11))
    assert waits(times) == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600]
    assert len(times) == 11


def test_doubling_from_one_second_stops_at_sixty() -> None:
    times = sends(ExponentialBackoff(base="1s", max_delay="60s", jitter="none", max_attempts="unlimited"), most=10)
    assert waits(times) == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_doubling_from_thirty_seconds_to_half_an_hour_with_up_to_thirty_on_top() -> None:
    policy = ExponentialBackoff(base="30s", max_delay="1800s", jitter="additive", max_attempts=10)
    least = [30, 60, 120, 240, 480, 960, 1800, 1800, 1800]
    assert waits(sends(policy, rng=Fixed(0))) == least
    for lowest, found in zip(least, waits(sends(policy)), strict=True):
        assert lowest <= found < lowest + 30
    assert len(sends(policy)) == 10


def test_a_fixed_delay_without_limit() -> None:
    assert waits(sends(FixedDelay(delay="1s", max_attempts="unlimited"), most=1000)) == [1] * 999


def test_a_fixed_delay_with_a_limit() -> None:
    assert waits(sends(FixedDelay(delay="2s", max_attempts=4))) == [2, 2, 2]


def test_no_retry_is_one_attempt() -> None:
    assert sends(NoRetry()) == [0]


def test_without_a_limit_retries_never_end() -> None:
    assert ExponentialBackoff(max_attempts="unlimited").delay_after(10**9, RNG) is not None


policies = st.builds(
    ExponentialBackoff,
    base=st.floats(0, 100),
    multiplier=st.one_of(st.integers(1, 1000), st.floats(1, 1e300)),
    max_delay=st.floats(100, 1e6),
    jitter=st.sampled_from(["none", "full", "additive"]),
    max_attempts=st.just("unlimited"),
)


@given(policies, st.integers(1, 10**9), st.floats(0, 1, exclude_max=True))
def test_a_delay_is_never_negative_and_never_above_the_maximum_with_jitter(
    policy: ExponentialBackoff, attempt: int, number: float
) -> None:
    delay = policy.delay_after(attempt, Fixed(number))
    assert delay is not None
    assert isinstance(policy.max_delay, float)
    assert isinstance(policy.base, float)
    assert 0 <= delay <= policy.max_delay + (policy.base if policy.jitter == "additive" else 0)


@given(policies, st.integers(1, 2000))
def test_without_jitter_a_delay_never_shrinks(policy: ExponentialBackoff, attempt: int) -> None:
    lowest = Fixed(1 if policy.jitter == "full" else 0)
    now, then = policy.delay_after(attempt, lowest), policy.delay_after(attempt + 1, lowest)
    assert now is not None
    assert then is not None
    assert now <= then


def test_full_jitter_is_between_zero_and_the_delay() -> None:
    policy = ExponentialBackoff(base="10s", max_delay="1h", jitter="full")
    assert policy.delay_after(3, Fixed(0)) == 0
    assert policy.delay_after(3, Fixed(0.5)) == 20
    assert policy.delay_after(3, Fixed(0.999)) == pytest.approx(39.96)


@pytest.mark.parametrize("multiplier", [2, 3, 10, 1.5, 1e300])
def test_a_huge_number_of_attempts_gives_the_maximum(multiplier: float) -> None:
    policy = ExponentialBackoff(
        base="1s", max_delay="1m", multiplier=multiplier, jitter="none", max_attempts="unlimited"
    )
    for attempt in (700, 1000, 1025, 10**6):
        assert policy.delay_after(attempt, RNG) == 60


def test_a_base_of_zero_stays_zero() -> None:
    policy = ExponentialBackoff(base=0, multiplier=3, jitter="none", max_attempts="unlimited")
    assert [policy.delay_after(attempt, RNG) for attempt in (1, 2, 10_000)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"base": "soon"}, r"ExponentialBackoff\.base"),
        ({"max_delay": -1}, r"ExponentialBackoff\.max_delay"),
        ({"base": "2h", "max_delay": "1h"}, "raise max_delay or lower base"),
        ({"multiplier": 0.5}, r"ExponentialBackoff\.multiplier"),
        ({"multiplier": float("nan")}, r"ExponentialBackoff\.multiplier"),
        ({"multiplier": float("inf")}, r"ExponentialBackoff\.multiplier"),
        ({"jitter": "some"}, r"ExponentialBackoff\.jitter"),
        ({"max_attempts": -1}, r"ExponentialBackoff\.max_attempts"),
        ({"max_attempts": 2.5}, r"ExponentialBackoff\.max_attempts"),
        ({"max_attempts": True}, r"ExponentialBackoff\.max_attempts"),
        ({"max_attempts": "11"}, r"ExponentialBackoff\.max_attempts"),
    ],
)
def test_invalid_settings_are_rejected_by_name(settings: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        ExponentialBackoff(**settings)  # type: ignore[arg-type]


def test_a_fixed_delay_is_validated_too() -> None:
    with pytest.raises(ConfigurationError, match=r"FixedDelay\.delay"):
        FixedDelay(delay="soon")
    with pytest.raises(ConfigurationError, match=r"FixedDelay\.max_attempts"):
        FixedDelay(max_attempts=-1)
