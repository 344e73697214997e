"""A breaker shuts a destination that takes nothing, tries it one message at a time, and never forgets to."""

from __future__ import annotations

import random

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.outcome import LONGEST_DELAY
from pillarbox.core.retry import ExponentialBackoff, FixedDelay, NoRetry
from pillarbox.relay.breaker import PROBE_TIMEOUT, UNLIMITED, CircuitBreaker
from tests.unit.relay.messages import Fixed

CHANCE = random.Random(5)
DOUBLING = ExponentialBackoff(base="1s", max="60s", jitter="none", max_attempts=0)


def probed(breaker: CircuitBreaker, now: float) -> float:
    """Wait for the next probe, send it, and say when that was."""
    now += breaker.next_attempt(now)
    assert breaker.may_send(now) == 1
    breaker.sent(1, now)
    return now


def test_a_closed_breaker_lets_everything_through() -> None:
    breaker = CircuitBreaker()
    assert (breaker.state(0), breaker.may_send(0), breaker.next_attempt(0)) == ("closed", UNLIMITED, 0)


def test_an_outage_opens_it_until_the_next_try() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.unavailable("connection refused", 10, CHANCE)
    assert (breaker.state(10), breaker.may_send(10), breaker.next_attempt(10)) == ("open", 0, 1)
    assert breaker.error == "connection refused"
    assert (breaker.state(11), breaker.may_send(11), breaker.next_attempt(11)) == ("half-open", 1, 0)


def test_one_probe_is_out_at_a_time() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.unavailable("down", 0, CHANCE)
    now = probed(breaker, 0)
    assert breaker.may_send(now) == 0
    assert breaker.state(now) == "half-open"
    assert breaker.next_attempt(now) > 0


def test_an_accepted_probe_closes_it() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.unavailable("down", 0, CHANCE)
    breaker.accepted(probed(breaker, 0))
    assert (breaker.state(1), breaker.may_send(1), breaker.error) == ("closed", UNLIMITED, "")


def test_each_failed_probe_waits_longer_up_to_a_minute_for_ever() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    now, waits = 0.0, []
    breaker.unavailable("down", now, CHANCE)
    for _ in range(10_000):
        waits.append(breaker.next_attempt(now))
        now = probed(breaker, now)
        breaker.unavailable("still down", now, CHANCE)
    assert waits[:8] == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60])
    assert waits[-1] == pytest.approx(60)
    assert breaker.error == "still down"


def test_after_it_closed_the_waits_begin_anew() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    now = 0.0
    breaker.unavailable("down", now, CHANCE)
    for _ in range(5):
        now = probed(breaker, now)
        breaker.unavailable("down", now, CHANCE)
    breaker.accepted(probed(breaker, now))
    breaker.unavailable("down again", 1000, CHANCE)
    assert breaker.next_attempt(1000) == 1


def test_lots_that_fail_together_are_one_failure() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    for late in (0, 0.1, 0.2, 5):
        breaker.unavailable("down", late, CHANCE)
    assert breaker.state(5) == "half-open"
    now = probed(breaker, 5)
    breaker.unavailable("down", now, CHANCE)
    assert breaker.next_attempt(now) == 2


def test_many_that_are_rejected_together_open_it_once_even_without_a_wait() -> None:
    breaker = CircuitBreaker(probe=ExponentialBackoff(base="1s", max="60s", jitter="full", max_attempts=0))
    for number in range(500):
        breaker.rejected(f"evt-{number}", 0, Fixed(0))
    now = probed(breaker, 0)
    breaker.rejected("evt-0", now, Fixed(1))
    assert breaker.next_attempt(now) == 2


def test_twenty_different_messages_rejected_in_a_row_open_it() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    for number in range(19):
        breaker.rejected(f"evt-{number}", 0, CHANCE)
    assert breaker.state(0) == "closed"
    breaker.rejected("evt-19", 0, CHANCE)
    assert breaker.state(0) == "open"
    assert breaker.error == "rejected 20 different messages in a row, accepted none"


def test_one_message_rejected_again_and_again_opens_nothing() -> None:
    breaker = CircuitBreaker()
    for _ in range(1000):
        breaker.rejected("poison", 0, CHANCE)
    assert breaker.state(0) == "closed"


def test_an_accepted_message_breaks_the_row() -> None:
    breaker = CircuitBreaker(rejections=3)
    for number in range(100):
        breaker.rejected(f"evt-{number}", 0, CHANCE)
        if number % 2:
            breaker.accepted(0)
        assert breaker.state(0) == "closed"


def test_a_rejected_probe_keeps_it_shut_where_rejections_shut_it() -> None:
    breaker = CircuitBreaker(probe=DOUBLING, rejections=2)
    breaker.rejected("a", 0, CHANCE)
    breaker.rejected("b", 0, CHANCE)
    now = probed(breaker, 0)
    breaker.rejected("a", now, CHANCE)
    assert (breaker.state(now), breaker.next_attempt(now)) == ("open", 2)


def test_a_rejected_probe_ends_an_outage_because_somebody_answered() -> None:
    breaker = CircuitBreaker(probe=DOUBLING, rejections=2)
    breaker.unavailable("down", 0, CHANCE)
    now = probed(breaker, 0)
    breaker.rejected("a", now, CHANCE)
    assert breaker.state(now) == "closed"
    breaker.rejected("b", now, CHANCE)
    assert breaker.state(now) == "open"


def test_rejections_never_open_it_where_nobody_counts_them() -> None:
    breaker = CircuitBreaker(rejections=0)
    for number in range(1000):
        breaker.rejected(f"evt-{number}", 0, CHANCE)
    assert breaker.state(0) == "closed"


def test_a_probe_whose_answer_is_lost_is_followed_by_another() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.unavailable("down", 0, CHANCE)
    now = probed(breaker, 0)
    assert breaker.next_attempt(now) == PROBE_TIMEOUT
    assert breaker.may_send(now + PROBE_TIMEOUT) == 1


def test_nothing_sent_is_no_probe() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.unavailable("down", 0, CHANCE)
    breaker.sent(0, 1)
    assert breaker.may_send(1) == 1


def test_a_person_may_hold_it_open_whatever_is_answered() -> None:
    breaker = CircuitBreaker()
    breaker.force("open")
    breaker.accepted(0)
    assert (breaker.state(0), breaker.may_send(0), breaker.next_attempt(0)) == ("open", 0, LONGEST_DELAY)
    breaker.force(None)
    assert breaker.may_send(0) == UNLIMITED


def test_a_person_may_hold_it_closed_and_the_answers_are_noted_all_the_same() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.force("closed")
    breaker.unavailable("down", 0, CHANCE)
    assert (breaker.state(0), breaker.may_send(0.5), breaker.next_attempt(0.5)) == ("closed", 0, 0.5)
    assert (breaker.may_send(1), breaker.next_attempt(1)) == (UNLIMITED, 0)
    breaker.force(None)
    assert breaker.state(0) == "open"


def test_held_closed_it_rests_longer_after_each_outage_and_then_everything_goes() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.force("closed")
    now, rests = 0.0, []
    for _ in range(8):
        for late in (0, 0.1):
            breaker.unavailable("down", now + late, CHANCE)
        rests.append(breaker.next_attempt(now))
        now += rests[-1]
        assert (breaker.may_send(now), breaker.fails) == (UNLIMITED, True)
        breaker.sent(100, now)
    assert rests == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60])
    breaker.accepted(now)
    assert (breaker.may_send(now), breaker.fails) == (UNLIMITED, False)
    breaker.unavailable("down again", now, CHANCE)
    assert breaker.next_attempt(now) == 1


def test_one_that_is_open_lets_everything_through_as_soon_as_a_person_holds_it_closed() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.unavailable("down", 0, CHANCE)
    breaker.force("closed")
    assert (breaker.may_send(0), breaker.fails) == (UNLIMITED, True)


def test_held_closed_it_does_not_rest_for_rejections_and_says_that_it_fails() -> None:
    breaker = CircuitBreaker(probe=DOUBLING, rejections=2)
    breaker.force("closed")
    for number in range(10):
        breaker.rejected(f"evt-{number}", 0, CHANCE)
    assert (breaker.may_send(0), breaker.fails) == (UNLIMITED, True)


def test_a_pause_stops_everything_and_changes_nothing() -> None:
    breaker = CircuitBreaker(probe=DOUBLING)
    breaker.pause()
    assert breaker.paused
    assert (breaker.state(0), breaker.may_send(0), breaker.next_attempt(0)) == ("closed", 0, LONGEST_DELAY)
    breaker.resume()
    assert (breaker.may_send(0), breaker.next_attempt(0)) == (UNLIMITED, 0)


def test_settings_that_make_no_sense_are_refused() -> None:
    for gives_up in (NoRetry(), FixedDelay(max_attempts=5), ExponentialBackoff(max_attempts=11)):
        with pytest.raises(ConfigurationError, match="max_attempts=0"):
            CircuitBreaker(probe=gives_up)
    with pytest.raises(ConfigurationError, match="0 means never"):
        CircuitBreaker(rejections=-1)
    with pytest.raises(ConfigurationError, match="held closed or open"):
        CircuitBreaker().force("half-open")  # type: ignore[arg-type]
