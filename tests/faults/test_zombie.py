"""A relay freezes for longer than its lease, and then continues: its writes are fenced."""

from __future__ import annotations

import pytest

from tests.faults.relays import IN_HAND
from tests.faults.scenarios import FENCED, come_back_from_the_dead, hold_up_a_settlement
from tests.faults.stage import Stage, assert_sound

EVENTS = 2_000
FEW = 300


@pytest.mark.parametrize(("leases", "heir_works"), [(3, True), (1, False)])
def test_a_relay_that_comes_back_from_the_dead_settles_nothing(stage: Stage, leases: int, heir_works: bool) -> None:
    findings = come_back_from_the_dead(stage, events=EVENTS, leases=leases, heir_works=heir_works)
    zombie = stage.relays[0]
    assert zombie.said(FENCED)
    assert zombie.said("lease lost")
    assert stage.counted() == 0
    assert_sound(findings, duplicates=range(1, IN_HAND + 1))


def test_lanes_are_not_taken_from_under_a_settlement(stage: Stage) -> None:
    findings = hold_up_a_settlement(stage, events=FEW)
    assert stage.counted() == 0
    assert_sound(findings, duplicates=range(IN_HAND + 1))
