"""Handlers that fail, hang, block or kill their process, on each store: other keys flow, and nothing is lost."""

from __future__ import annotations

import pytest

from tests.faults.conftest import MakeStage
from tests.faults.relays import MAX_IN_FLIGHT
from tests.faults.scenarios import always_fail, block_the_event_loop, hang, kill_the_process
from tests.faults.stage import Stage, assert_sound

EVENTS = 500
FEW = 50
MOST_CRASHES = 8


@pytest.fixture
def odd(make_handled: MakeStage, any_store: str) -> Stage:
    return make_handled(store=any_store)


@pytest.fixture(params=["mariadb", "sqlite"])
def odd_beside_postgres(request: pytest.FixtureRequest, make_handled: MakeStage) -> Stage:
    """For what tests/faults/test_handlers.py does on PostgreSQL."""
    return make_handled(store=request.getfixturevalue(f"{request.param}_url"))


def test_a_handler_that_always_fails_delays_its_own_key_only(odd: Stage) -> None:
    findings, dead = always_fail(odd, events=EVENTS)
    assert dead == odd.ledger.committed["poisoned"][:1]
    assert_sound(findings, duplicates=range(1))


def test_a_handler_that_kills_its_process_harms_no_other_key(odd_beside_postgres: Stage) -> None:
    findings, dead, crashes = kill_the_process(odd_beside_postgres, events=FEW)
    assert dead == odd_beside_postgres.ledger.committed["poisoned"]
    assert 1 <= crashes <= MOST_CRASHES
    assert_sound(findings, duplicates=range(crashes * MAX_IN_FLIGHT + 1))


def test_a_handler_that_hangs_delays_its_own_key_only(odd: Stage) -> None:
    assert_sound(hang(odd, events=EVENTS), duplicates=range(1))


def test_a_handler_that_blocks_the_event_loop_does_not_lose_the_lanes(odd_beside_postgres: Stage) -> None:
    assert_sound(block_the_event_loop(odd_beside_postgres, events=EVENTS), duplicates=range(1))
