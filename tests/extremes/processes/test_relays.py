"""Relays that are killed, frozen, started and drained with each transport, on PostgreSQL."""

from __future__ import annotations

from tests.extremes.processes.conftest import A_CALL
from tests.faults.relays import MAX_IN_FLIGHT
from tests.faults.scenarios import (
    CRASHES,
    change_the_number,
    duplicates_after,
    kill_relays,
    restart_one_by_one,
    resume_after_its_lease,
)
from tests.faults.stage import Stage, assert_sound

EVENTS = 2_000


def test_relays_killed_at_random_and_at_each_point(stage: Stage, transport: str) -> None:
    crashes = [crash for crash in CRASHES if transport != "handlers" or crash not in A_CALL]
    stage.rng.shuffle(crashes)
    findings = kill_relays(stage, crashes, events=EVENTS)
    assert_sound(findings, duplicates=duplicates_after(crashes, deduplicated=transport == "nats"))


def test_a_relay_that_resumes_after_three_leases_settles_nothing(stage: Stage, transport: str) -> None:
    findings = resume_after_its_lease(stage, events=EVENTS, leases=3, successor_works=True)
    assert stage.relays[0].said("lease lost")
    assert stage.counted() == 0
    assert_sound(findings, duplicates=range(transport != "nats", MAX_IN_FLIGHT + 1))


def test_from_one_relay_to_four_to_two(stage: Stage) -> None:
    assert_sound(change_the_number(stage), duplicates=range(1))


def test_a_rolling_restart_repeats_no_event(stage: Stage) -> None:
    assert_sound(restart_one_by_one(stage), duplicates=range(1))
