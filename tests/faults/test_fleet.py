"""Relays join, leave and are replaced: without a fault nothing is sent twice."""

from __future__ import annotations

from tests.faults.scenarios import change_the_number, restart_one_by_one
from tests.faults.stage import Stage, assert_sound


def test_from_one_relay_to_four_to_two(any_stage: Stage) -> None:
    assert_sound(change_the_number(any_stage), duplicates=range(1))


def test_a_rolling_restart_repeats_no_event(any_stage: Stage) -> None:
    assert_sound(restart_one_by_one(any_stage), duplicates=range(1))
