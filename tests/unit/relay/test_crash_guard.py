"""The crash guard finds a message that crashes its relay, and quarantines others only briefly."""

import math
from datetime import UTC, datetime

import pytest

from pillarbox.core.clock import SystemClock
from pillarbox.core.lane import OwnedLane
from pillarbox.relay.guards import MAX_RELAY_CRASHES, CrashGuard
from pillarbox.relay.placement import FetchedMessage
from tests.unit.relay.messages import message


def guard(*, quarantine_size: int = 1, grace: float = 0) -> CrashGuard:
    return CrashGuard(quarantine_size=quarantine_size, grace=grace, clock=SystemClock())


def test_a_lane_with_crashes_is_guarded_for_a_window() -> None:
    crash_guard = guard(quarantine_size=2)
    crash_guard.acquired([OwnedLane(lane=3, epoch=9, crashes=2), OwnedLane(lane=4, epoch=9, crashes=1)])
    one, other = message(id=1, lane=3), message(id=2, lane=4)
    assert crash_guard.quarantines(one)
    assert not crash_guard.quarantines(other)
    crash_guard.settled([one])
    crash_guard.settled([one])
    assert not crash_guard.quarantines(one)


def test_a_message_that_was_in_flight_during_a_crash_is_quarantined() -> None:
    assert guard().quarantines(message(id=1, attempts=1))


@pytest.mark.parametrize(("attempts", "dead"), [(MAX_RELAY_CRASHES - 1, False), (MAX_RELAY_CRASHES, True)])
def test_a_message_is_dead_lettered_after_enough_crashes(attempts: int, dead: bool) -> None:
    assert guard().is_exhausted(message(id=1, attempts=attempts)) is dead


def test_no_message_is_dead_lettered_before_running_relays_could_settle() -> None:
    quarantined = message(id=1, lane=3, attempts=MAX_RELAY_CRASHES)
    for grace, dead in ((0, True), (3600, False)):
        crash_guard = guard(grace=grace)
        crash_guard.acquired([OwnedLane(lane=3, epoch=9, crashes=MAX_RELAY_CRASHES)])
        assert (crash_guard.decision(quarantined) is not None) is dead


def test_an_attempt_that_the_relay_survived_does_not_count() -> None:
    crash_guard, quarantined = guard(), message(id=1, lane=3, attempts=MAX_RELAY_CRASHES)
    crash_guard.count(quarantined)
    assert not crash_guard.is_exhausted(quarantined)
    assert crash_guard.survived(lambda lane: lane == 3) == []
    assert crash_guard.survived(lambda lane: False) == [quarantined.identity]
    crash_guard.cleared([quarantined.identity])
    assert crash_guard.is_exhausted(quarantined)


def test_an_ordinary_retry_is_not_quarantined() -> None:
    retried = message(id=1, attempts=9, available_at=datetime(2026, 1, 1, tzinfo=UTC))
    crash_guard = guard()
    assert not crash_guard.quarantines(retried)
    assert not crash_guard.is_exhausted(retried)


def fetched(*ids: int) -> list[FetchedMessage]:
    return [FetchedMessage(message(id=id, lane=3), ("d",), 1, False, 9, 0) for id in ids]


def test_what_is_recorded_after_a_takeover_is_not_quarantined() -> None:
    crash_guard = guard(quarantine_size=9)
    crash_guard.acquired([OwnedLane(lane=3, epoch=9, crashes=2)])
    crash_guard.fetched(fetched(1), {3: 1}, {3: 9})  # more messages are left behind
    assert crash_guard.quarantines(message(id=5, lane=3))
    crash_guard.fetched(fetched(1, 2), {3: math.inf}, {3: 8})  # it began before the takeover
    assert crash_guard.quarantines(message(id=5, lane=3))
    crash_guard.fetched(fetched(1, 2), {3: math.inf}, {3: 9})
    assert crash_guard.quarantines(message(id=2, lane=3))
    assert not crash_guard.quarantines(message(id=3, lane=3))
    due = message(id=3, lane=3, available_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert crash_guard.quarantines(due)


def test_messages_that_are_not_quarantined_do_not_end_the_quarantine() -> None:
    crash_guard = guard(quarantine_size=1)
    crash_guard.acquired([OwnedLane(lane=3, epoch=9, crashes=2)])
    crash_guard.fetched(fetched(1), {3: math.inf}, {3: 9})
    crash_guard.settled([message(id=2, lane=3)])
    assert crash_guard.quarantines(message(id=1, lane=3))
    crash_guard.settled([message(id=1, lane=3)])
    assert not crash_guard.quarantines(message(id=1, lane=3))
    assert crash_guard.inactive
