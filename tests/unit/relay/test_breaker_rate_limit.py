"""A rate limit holds in every interval, and relays share one limit."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.core.errors import ConfigurationError
from pillarbox.relay.destination_state import RateLimit

rates = st.floats(0.01, 100_000)
instants = st.floats(0, 1e7)


def test_a_full_bucket_is_available_at_once_then_at_the_rate() -> None:
    limit = RateLimit(10)
    assert limit.may_send(0) == 10
    limit.sent(10, 0)
    assert limit.may_send(0) == 0
    assert limit.may_send(0.5) == 5
    assert limit.may_send(100) == 10


def test_a_slow_rate_allows_one_message() -> None:
    limit = RateLimit(0.5)
    assert limit.may_send(0) == 1
    limit.sent(1, 0)
    assert limit.wait(0) == pytest.approx(2, abs=1e-3)
    assert limit.may_send(1.9) == 0
    assert limit.may_send(2.1) == 1


def test_the_burst_limits_messages_at_once() -> None:
    assert RateLimit(100, burst=5).may_send(0) == 5
    assert RateLimit(1, burst=50).may_send(0) == 50


def test_messages_beyond_the_limit_are_a_debt() -> None:
    limit = RateLimit(10)
    limit.sent(30, 0)
    assert limit.may_send(1) == 0
    assert limit.wait(1) == pytest.approx(1.1, abs=1e-3)
    assert limit.may_send(2.5) == 5


@given(rates, instants, st.integers(1, 64))
def test_one_message_is_allowed_after_the_delay_and_not_before(rate: float, now: float, relays: int) -> None:
    limit = RateLimit(rate)
    limit.share(relays)
    limit.sent(limit.may_send(now), now)
    wait = limit.wait(now)
    assert wait > 0
    assert limit.may_send(now + wait / 2) == 0 or wait < 1e-4
    assert limit.may_send(now + wait) >= 1
    assert limit.wait(now + wait) == 0


@given(rates, st.floats(1, 1000), st.lists(st.floats(0, 10), min_size=1, max_size=50))
def test_no_interval_exceeds_burst_and_rate(rate: float, burst: float, pauses: list[float]) -> None:
    limit = RateLimit(rate, burst)
    times = list(accumulate(pauses))
    sent: list[int] = []
    for now in times:
        sent.append(limit.may_send(now))
        limit.sent(sent[-1], now)
    for first in range(len(times)):
        for last in range(first, len(times)):
            allowed = burst + rate * (times[last] - times[first])
            assert sum(sent[first : last + 1]) <= allowed * (1 + 1e-9)


@given(rates, st.integers(1, 64))
def test_relays_share_the_rate(rate: float, relays: int) -> None:
    limits = [RateLimit(rate) for _ in range(relays)]
    for limit in limits:
        limit.share(relays)
        limit.sent(limit.may_send(0), 0)
    # From an empty bucket, over the time in which one share fills it.
    elapsed = 0.5 * max(1.0, rate / relays) / (rate / relays)
    assert sum(limit.may_send(elapsed) for limit in limits) <= rate * elapsed + relays


def test_a_share_grows_when_other_relays_stop() -> None:
    limit = RateLimit(100)
    limit.share(4)
    assert limit.may_send(0) == 25
    limit.sent(25, 0)
    limit.share(1)
    assert limit.may_send(0.5) == 50


def test_without_other_relays_the_share_is_the_whole_rate() -> None:
    limit = RateLimit(100)
    limit.share(0)
    assert limit.may_send(0) == 100


def test_tokens_are_granted_once_and_only_when_time_advances() -> None:
    limit = RateLimit(10)
    limit.sent(10, 5)
    assert [limit.may_send(now) for now in (5.5, 5.5, 3.0, 5.5)] == [5, 5, 5, 5]


@pytest.mark.parametrize("rate", [0, -1, float("inf"), float("nan")])
def test_an_invalid_rate_is_rejected(rate: float) -> None:
    with pytest.raises(ConfigurationError, match="pause the destination"):
        RateLimit(rate)


@pytest.mark.parametrize("burst", [0, 0.5, float("inf"), float("nan")])
def test_a_burst_below_one_message_is_rejected(burst: float) -> None:
    with pytest.raises(ConfigurationError, match="at least one message"):
        RateLimit(1, burst)
