"""Relays on SQLite that are killed, frozen, started and drained: one owns the only lane, the others stand by."""

from __future__ import annotations

from functools import partial

import pytest

from tests.extremes.linked import received
from tests.extremes.processes.conftest import A_CALL
from tests.faults.conftest import MakeStage
from tests.faults.relays import MAX_IN_FLIGHT, SHORT_LEASE, RelayProcess
from tests.faults.scenarios import CRASHES, duplicates_after, kill_relays, leave, resume_after_its_lease
from tests.faults.stage import Stage, assert_sound
from tests.servers.redis import RedisServer

EVENTS = 1_000
FEW = 50
HAND_OVER = ("before-release", "after-release")
UNREACHABLE = "redis://127.0.0.1:1"


def owner(stage: Stage) -> RelayProcess:
    """Wait until a running relay owns the lane, and return it."""

    def owners() -> list[RelayProcess]:
        return [relay for relay in stage.relays if relay.running and stage.lanes_of(relay)]

    stage.wait_until(lambda: len(owners()) == 1, what="a running relay owns the lane")
    return owners()[0]


def test_relays_killed_at_random_and_at_each_point(stage_on_sqlite: Stage) -> None:
    stage = stage_on_sqlite
    crashes = [crash for crash in CRASHES if crash not in A_CALL and crash not in HAND_OVER]
    stage.rng.shuffle(crashes)
    assert_sound(kill_relays(stage, crashes, events=EVENTS, relays=1), duplicates=duplicates_after(crashes))


@pytest.mark.parametrize("point", HAND_OVER)
def test_a_relay_killed_while_it_hands_the_lane_over(
    make_stage: MakeStage, sqlite_url: str, redis_server: RedisServer, point: str
) -> None:
    """A relay releases the only lane when it cannot send and another one can."""
    stage = make_stage(store=sqlite_url, transport=redis_server.url(), receive=partial(received, redis_server))
    first = stage.start(SHORT_LEASE)
    stage.write(FEW)
    stage.wait_drained()
    stage.freeze(first)
    stage.write(EVENTS)
    cut_off = stage.start(SHORT_LEASE | {"TRANSPORT": UNREACHABLE, "FAILPOINT": point})
    stage.wait_until(lambda: stage.lanes_of(cut_off) == 1, what="the relay without a broker has the lane")
    first.thaw()
    stage.wait_until(lambda: not cut_off.running, what="the relay without a broker releases the lane")
    assert cut_off.wait() == -9
    stage.wait_drained()
    assert_sound(stage.check(), duplicates=range(1))


def test_a_relay_that_resumes_after_three_leases_settles_nothing(stage_on_sqlite: Stage) -> None:
    findings = resume_after_its_lease(stage_on_sqlite, events=EVENTS, leases=3, successor_works=True)
    assert stage_on_sqlite.relays[0].said("lease lost")
    assert stage_on_sqlite.counted() == 0
    assert_sound(findings, duplicates=range(1, MAX_IN_FLIGHT + 1))


@pytest.mark.parametrize("has_guard", [True, False])
def test_a_settlement_after_the_lease_is_detected_if_the_epoch_is_not_compared(
    make_handled: MakeStage, sqlite_url: str, has_guard: bool
) -> None:
    """Nothing else could settle the events: the other relay cannot send."""
    stage = make_handled(store=sqlite_url, without=None if has_guard else "epoch")
    findings = resume_after_its_lease(stage, events=EVENTS, leases=1, successor_works=False)
    assert bool(findings.stale) is not has_guard


def test_relays_that_come_and_go_repeat_no_event(stage_on_sqlite: Stage) -> None:
    """From one relay to four to two, and each of them replaced by a new one: the owner of the lane leaves each time."""
    stage = stage_on_sqlite
    stage.start()
    with stage.under_load():
        for _ in range(3):
            stage.start()
        assert sum(map(stage.lives, stage.relays)) == 4
        for _ in range(2):
            leave(stage, owner(stage))
        assert sum(relay.running for relay in stage.relays) == 2
        for _ in range(2):
            stage.start()
            leave(stage, owner(stage))
        stage.wait_until(lambda: owner(stage).said("delivered event"), what="the last owner works")
    stage.wait_drained()
    assert sum(relay.said("delivered event") for relay in stage.relays) == 5
    assert stage.counted() == 0
    assert_sound(stage.check(), duplicates=range(1))


def test_a_relay_that_cannot_send_leaves_the_lane_to_one_that_has_sent_nothing_yet(
    make_stage: MakeStage, sqlite_url: str, redis_server: RedisServer
) -> None:
    stage = make_stage(store=sqlite_url, transport=redis_server.url(), receive=partial(received, redis_server))
    cut_off = stage.start({"TRANSPORT": UNREACHABLE})
    stage.write(EVENTS)
    stage.wait_until(lambda: cut_off.said("breaker open"), what="the relay without a broker cannot send")
    stage.start()
    stage.wait_drained()
    assert_sound(stage.check(), duplicates=range(1))
