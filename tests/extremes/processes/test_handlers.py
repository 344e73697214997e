"""Handlers that fail, hang, block or kill their process, on each store: other keys flow, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extremes.databases import rows
from tests.faults.conftest import MakeStage
from tests.faults.relays import MAX_IN_FLIGHT
from tests.faults.scenarios import always_fail, block_the_event_loop, hang, kill_the_process, pending
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


@pytest.mark.parametrize("point", ["before-commit", "after-commit"])
def test_a_relay_killed_around_the_commit_of_a_consumer_has_each_effect_once(
    make_stage: MakeStage, any_store: str, tmp_path: Path, point: str
) -> None:
    """The relay calls a consumer with an inbox: it is killed before the commit, and between commit and settlement."""
    stage = make_stage(store=any_store, transport="handlers:tests.integration.consume.billing_app:handlers")
    rows(any_store, "CREATE TABLE effect (event_id VARCHAR(200) NOT NULL)")

    def effects() -> list[str]:
        return stage.ids("SELECT event_id FROM effect")

    (tmp_path / point).touch()
    killed = stage.start(wait=False)
    stage.write(FEW)
    stage.wait_until(lambda: not killed.running, what="the relay is killed")
    assert killed.wait() == -9
    assert not (tmp_path / point).exists()
    has_unsettled_effects = not pending(stage).isdisjoint(effects())
    assert has_unsettled_effects or point == "before-commit"
    stage.start()
    stage.wait_drained()
    stage.stop_all()
    assert sorted(effects()) == sorted(one for ids in stage.ledger.committed.values() for one in ids)
