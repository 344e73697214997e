"""Handlers that crash or block their process, or reject events: other keys are unaffected, no event is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import handling
from tests.faults.conftest import MakeStage
from tests.faults.relays import MAX_IN_FLIGHT
from tests.faults.scenarios import block_the_event_loop, kill_the_process, refuse_now_and_then
from tests.faults.stage import Stage, assert_sound

EVENTS = 500
FEW = 50
MOST_CRASHES = 8


@pytest.fixture
def odd(make_handled: MakeStage, postgres_url: str) -> Stage:
    return make_handled(store=postgres_url)


def test_a_handler_that_kills_its_process_harms_no_other_key(odd: Stage) -> None:
    findings, dead, crashes = kill_the_process(odd, events=FEW)
    assert dead == odd.ledger.committed["poisoned"]
    assert 1 <= crashes <= MOST_CRASHES
    assert_sound(findings, duplicates=range(crashes * MAX_IN_FLIGHT + 1))


def test_a_handler_that_blocks_the_event_loop_does_not_lose_the_lanes(odd: Stage) -> None:
    assert_sound(block_the_event_loop(odd, events=EVENTS), duplicates=range(1))


def test_a_handler_that_fails_blocks_its_own_key_only(make_stage: MakeStage, postgres_url: str, tmp_path: Path) -> None:
    stage = make_stage(store=postgres_url, transport="handlers:tests.faults.handling:refusing")
    assert_sound(refuse_now_and_then(stage, tmp_path / handling.NOTES, events=EVENTS), duplicates=range(1))
