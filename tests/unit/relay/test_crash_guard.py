"""A message that kills its relay is found out, and others are not suspected for long."""

import pytest

from pillarbox.core.clock import SystemClock
from pillarbox.core.lane import Lease
from pillarbox.relay.crash_guard import ENOUGH, Suspicion
from tests.unit.relay.messages import message


def suspicious(*, window: int = 1, grace: float = 0) -> Suspicion:
    return Suspicion(window=window, grace=grace, clock=SystemClock())


def test_a_lane_with_a_history_is_worked_with_care_for_a_window() -> None:
    suspicion = suspicious(window=2)
    suspicion.took([Lease(lane=3, epoch=9, crashes=2), Lease(lane=4, epoch=9, crashes=1)])
    one, other = message(id=1, lane=3), message(id=2, lane=4)
    assert suspicion.suspects(one)
    assert not suspicion.suspects(other)
    suspicion.passed([one])
    suspicion.passed([one])
    assert not suspicion.suspects(one)


def test_a_message_that_was_tried_and_is_still_ready_is_a_suspect() -> None:
    assert suspicious().suspects(message(id=1, attempts=1))


@pytest.mark.parametrize(("attempts", "dies"), [(ENOUGH - 1, False), (ENOUGH, True)])
def test_it_is_given_up_on_after_enough_of_them(attempts: int, dies: bool) -> None:
    assert suspicious().enough(message(id=1, attempts=attempts)) is dies


def test_nobody_is_given_up_on_before_the_relays_that_may_live_could_say_so() -> None:
    suspect = message(id=1, lane=3, attempts=ENOUGH)
    for grace, dies in ((0, True), (3600, False)):
        suspicion = suspicious(grace=grace)
        suspicion.took([Lease(lane=3, epoch=9, crashes=ENOUGH)])
        assert (suspicion.convicted(suspect) is not None) is dies


def test_an_attempt_of_its_own_that_a_relay_outlived_does_not_count() -> None:
    suspicion, suspect = suspicious(), message(id=1, lane=3, attempts=ENOUGH)
    suspicion.charge(suspect)
    assert not suspicion.enough(suspect)
    assert suspicion.outlived(lambda lane: lane == 3) == []
    assert suspicion.outlived(lambda lane: False) == [suspect.identity]
    suspicion.cleared([suspect.identity])
    assert suspicion.enough(suspect)


def test_an_ordinary_retry_is_no_suspect() -> None:
    from datetime import UTC, datetime

    retried = message(id=1, attempts=9, available_at=datetime(2026, 1, 1, tzinfo=UTC))
    suspicion = suspicious()
    assert not suspicion.suspects(retried)
    assert not suspicion.enough(retried)
