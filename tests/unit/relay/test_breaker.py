"""A breaker opens for an unavailable destination and probes it with one message at a time."""

from __future__ import annotations

import random

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.outcome import MAX_DELAY
from pillarbox.relay.destination_state import PROBE_TIMEOUT, UNLIMITED, CircuitBreaker
from pillarbox.retry_policies import ExponentialBackoff, FixedDelay, NoRetry
from tests.unit.relay.messages import Fixed

RNG = random.Random(5)
DOUBLING = ExponentialBackoff(base="1s", max_delay="60s", jitter="none", max_attempts="unlimited")


def probed(breaker: CircuitBreaker, now: float) -> float:
    """Wait for the next probe and send it; returns its time."""
    now += breaker.next_attempt(now)
    assert breaker.may_send(now) == 1
    breaker.sent(1, now)
    return now


def test_a_closed_breaker_allows_everything() -> None:
    breaker = CircuitBreaker()
    assert (breaker.state(0), breaker.may_send(0), breaker.next_attempt(0)) == ("closed", UNLIMITED, 0)


def test_an_outage_opens_the_breaker_until_the_next_probe() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.unavailable("connection refused", 10, RNG)
    assert (breaker.state(10), breaker.may_send(10), breaker.next_attempt(10)) == ("open", 0, 1)
    assert breaker.error == "connection refused"
    assert (breaker.state(11), breaker.may_send(11), breaker.next_attempt(11)) == ("half-open", 1, 0)


def test_one_probe_is_in_flight_at_a_time() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.unavailable("down", 0, RNG)
    now = probed(breaker, 0)
    assert breaker.may_send(now) == 0
    assert breaker.state(now) == "half-open"
    assert breaker.next_attempt(now) > 0


def test_an_accepted_probe_closes_the_breaker() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.unavailable("down", 0, RNG)
    breaker.accepted(probed(breaker, 0))
    assert (breaker.state(1), breaker.may_send(1), breaker.error) == ("closed", UNLIMITED, "")


def test_probe_delays_grow_up_to_a_minute() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    now, waits = 0.0, []
    breaker.unavailable("down", now, RNG)
    for _ in range(10_000):
        waits.append(breaker.next_attempt(now))
        now = probed(breaker, now)
        breaker.unavailable("still down", now, RNG)
    assert waits[:8] == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60])
    assert waits[-1] == pytest.approx(60)
    assert breaker.error == "still down"


def test_closing_resets_the_probe_delay() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    now = 0.0
    breaker.unavailable("down", now, RNG)
    for _ in range(5):
        now = probed(breaker, now)
        breaker.unavailable("down", now, RNG)
    breaker.accepted(probed(breaker, now))
    breaker.unavailable("down again", 1000, RNG)
    assert breaker.next_attempt(1000) == 1


def test_batches_that_fail_together_count_as_one_failure() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    for late in (0, 0.1, 0.2, 5):
        breaker.unavailable("down", late, RNG)
    assert breaker.state(5) == "half-open"
    now = probed(breaker, 5)
    breaker.unavailable("down", now, RNG)
    assert breaker.next_attempt(now) == 2


def test_messages_rejected_together_open_the_breaker_once() -> None:
    breaker = CircuitBreaker(
        probe=ExponentialBackoff(base="1s", max_delay="60s", jitter="full", max_attempts="unlimited")
    )
    for number in range(500):
        breaker.rejected(f"evt-{number}", 0, Fixed(0))
    now = probed(breaker, 0)
    breaker.rejected("evt-0", now, Fixed(1))
    assert breaker.next_attempt(now) == 2


def test_twenty_rejected_messages_in_a_row_open_the_breaker() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    for number in range(19):
        breaker.rejected(f"evt-{number}", 0, RNG)
    assert breaker.state(0) == "closed"
    breaker.rejected("evt-19", 0, RNG)
    assert breaker.state(0) == "open"
    assert breaker.error == "rejected 20 different messages in a row, accepted none"


def test_one_message_rejected_repeatedly_does_not_open_the_breaker() -> None:
    breaker = CircuitBreaker()
    for _ in range(1000):
        breaker.rejected("poison", 0, RNG)
    assert breaker.state(0) == "closed"


def test_an_accepted_message_resets_the_count_of_rejections() -> None:
    breaker = CircuitBreaker(rejections=3)
    for number in range(100):
        breaker.rejected(f"evt-{number}", 0, RNG)
        if number % 2:
            breaker.accepted(0)
        assert breaker.state(0) == "closed"


def test_a_rejected_probe_keeps_a_breaker_open_that_rejections_opened() -> None:
    breaker = CircuitBreaker(probe=DOUBLING, rejections=2)
    breaker.rejected("a", 0, RNG)
    breaker.rejected("b", 0, RNG)
    now = probed(breaker, 0)
    breaker.rejected("a", now, RNG)
    assert (breaker.state(now), breaker.next_attempt(now)) == ("open", 2)


def test_a_rejected_probe_ends_an_outage() -> None:
    breaker = CircuitBreaker(probe=DOUBLING, rejections=2)
    breaker.unavailable("down", 0, RNG)
    now = probed(breaker, 0)
    breaker.rejected("a", now, RNG)
    assert breaker.state(now) == "closed"
    breaker.rejected("b", now, RNG)
    assert breaker.state(now) == "open"


def test_rejections_do_not_open_the_breaker_if_not_counted() -> None:
    breaker = CircuitBreaker(rejections=0)
    for number in range(1000):
        breaker.rejected(f"evt-{number}", 0, RNG)
    assert breaker.state(0) == "closed"


def test_a_probe_without_a_result_is_followed_by_another() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.unavailable("down", 0, RNG)
    now = probed(breaker, 0)
    assert breaker.next_attempt(now) == PROBE_TIMEOUT
    assert breaker.may_send(now + PROBE_TIMEOUT) == 1


def test_an_empty_batch_is_not_a_probe() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.unavailable("down", 0, RNG)
    breaker.sent(0, 1)
    assert breaker.may_send(1) == 1


def test_an_operator_can_force_the_breaker_open() -> None:
    breaker = CircuitBreaker()
    breaker.force("open")
    breaker.accepted(0)
    assert (breaker.state(0), breaker.may_send(0), breaker.next_attempt(0)) == ("open", 0, MAX_DELAY)
    breaker.force(None)
    assert breaker.may_send(0) == UNLIMITED


def test_a_breaker_forced_closed_still_counts_results() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.force("closed")
    breaker.unavailable("down", 0, RNG)
    assert (breaker.state(0), breaker.may_send(0.5), breaker.next_attempt(0.5)) == ("closed", 0, 0.5)
    assert (breaker.may_send(1), breaker.next_attempt(1)) == (UNLIMITED, 0)
    breaker.force(None)
    assert breaker.state(0) == "open"


def test_a_breaker_forced_closed_backs_off_after_each_outage() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.force("closed")
    now, rests = 0.0, []
    for _ in range(8):
        for late in (0, 0.1):
            breaker.unavailable("down", now + late, RNG)
        rests.append(breaker.next_attempt(now))
        now += rests[-1]
        assert (breaker.may_send(now), breaker.fails) == (UNLIMITED, True)
        breaker.sent(100, now)
    assert rests == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60])
    breaker.accepted(now)
    assert (breaker.may_send(now), breaker.fails) == (UNLIMITED, False)
    breaker.unavailable("down again", now, RNG)
    assert breaker.next_attempt(now) == 1


def test_forcing_an_open_breaker_closed_allows_everything_at_once() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.unavailable("down", 0, RNG)
    breaker.force("closed")
    assert (breaker.may_send(0), breaker.fails) == (UNLIMITED, True)


def test_a_breaker_forced_closed_does_not_back_off_for_rejections() -> None:
    breaker = CircuitBreaker(probe=DOUBLING, rejections=2)
    breaker.force("closed")
    for number in range(10):
        breaker.rejected(f"evt-{number}", 0, RNG)
    assert (breaker.may_send(0), breaker.fails) == (UNLIMITED, True)


def test_a_pause_allows_nothing_and_keeps_the_state() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.pause()
    assert breaker.paused
    assert (breaker.state(0), breaker.may_send(0), breaker.next_attempt(0)) == ("closed", 0, MAX_DELAY)
    breaker.resume()
    assert (breaker.may_send(0), breaker.next_attempt(0)) == (UNLIMITED, 0)


def test_invalid_settings_are_rejected() -> None:
    for limited in (NoRetry(), FixedDelay(max_attempts=5), ExponentialBackoff(max_attempts=11)):
        with pytest.raises(ConfigurationError, match='max_attempts="unlimited"'):
            CircuitBreaker(probe=limited)
    with pytest.raises(ConfigurationError, match="0 means never"):
        CircuitBreaker(rejections=-1)
    with pytest.raises(ConfigurationError, match="held closed or open"):
        CircuitBreaker().force("half-open")  # type: ignore[arg-type]


def test_a_destination_that_asks_to_wait_is_not_probed_before() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.unavailable("429", 0, RNG, retry_after=30)
    assert (breaker.state(29), breaker.may_send(29), breaker.next_attempt(0)) == ("open", 0, 30)
    assert (breaker.state(30), breaker.may_send(30)) == ("half-open", 1)


def test_a_late_result_lengthens_the_wait_only_if_it_asks_for_a_longer_one() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.unavailable("503", 0, RNG)
    breaker.unavailable("429", 0.5, RNG, retry_after=10)
    assert breaker.next_attempt(0.5) == 10
    breaker.unavailable("429", 0.6, RNG, retry_after=2)
    breaker.unavailable("503", 0.7, RNG)
    assert breaker.next_attempt(0.5) == 10


def test_neither_an_accepted_message_nor_a_connection_ends_the_wait_that_was_asked_for() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.unavailable("429", 0, RNG, retry_after=30)
    breaker.accepted(1)
    breaker.reachable(2)
    assert breaker.may_send(29) == 0
    breaker.accepted(probed(breaker, 2))
    assert breaker.state(30) == "closed"


def test_a_breaker_that_is_forced_closed_keeps_the_wait_that_was_asked_for() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.force("closed")
    breaker.unavailable("429", 0, RNG, retry_after=30)
    assert (breaker.may_send(29), breaker.may_send(30)) == (0, UNLIMITED)
