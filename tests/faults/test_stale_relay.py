"""A relay freezes for longer than its lease, and then continues: its writes are fenced."""

from __future__ import annotations

import pytest

from tests.faults.relays import MAX_IN_FLIGHT
from tests.faults.scenarios import FENCED, delay_a_settlement, resume_after_its_lease
from tests.faults.stage import Stage, assert_sound

EVENTS = 2_000
FEW = 300


@pytest.mark.parametrize(("leases", "successor_works"), [(3, True), (1, False)])
def test_a_relay_that_resumes_after_its_lease_settles_nothing(
    any_stage: Stage, leases: int, successor_works: bool
) -> None:
    stage = any_stage
    findings = resume_after_its_lease(stage, events=EVENTS, leases=leases, successor_works=successor_works)
    stale_relay = stage.relays[0]
    assert stale_relay.said(FENCED)
    assert stale_relay.said("lease lost")
    assert stage.counted() == 0
    assert_sound(findings, duplicates=range(1, MAX_IN_FLIGHT + 1))


def test_lanes_are_not_taken_from_under_a_settlement(stage: Stage) -> None:
    findings = delay_a_settlement(stage, events=FEW)
    assert stage.counted() == 0
    assert_sound(findings, duplicates=range(MAX_IN_FLIGHT + 1))
