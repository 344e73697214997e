"""Relays join, leave and are replaced: without a fault nothing is sent twice."""

from __future__ import annotations

from tests.faults.stage import Stage, assert_sound


def assert_all_worked(stage: Stage) -> None:
    """Check that each relay had lanes and delivered events; a change of owner counts no attempt."""
    assert all(relay.said("delivered event") for relay in stage.relays)
    assert stage.counted() == 0


def test_from_one_relay_to_four_to_two(any_stage: Stage) -> None:
    stage = any_stage
    fleet = [stage.start()]
    with stage.under_load():
        fleet += [stage.start() for _ in range(3)]
        stage.wait_until(lambda: all(stage.lanes_of(relay) == 16 for relay in fleet), what="each has its share")
        for relay in fleet[:2]:
            stage.freeze_unsettled(relay)
            relay.terminate()
            relay.thaw()
        assert [relay.wait() for relay in fleet[:2]] == [0, 0]
        stage.wait_until(lambda: all(stage.lanes_of(relay) == 32 for relay in fleet[2:]), what="two share the lanes")
    stage.wait_drained()
    assert_all_worked(stage)
    assert_sound(stage.check(), duplicates=range(1))


def test_a_rolling_restart_repeats_no_event(any_stage: Stage) -> None:
    stage = any_stage
    fleet = [stage.start() for _ in range(3)]
    with stage.under_load():
        for old in fleet:
            stage.start()
            stage.freeze_unsettled(old)
            old.terminate()
            old.thaw()
            assert old.wait() == 0
        stage.wait_until(lambda: all(relay.said("delivered event") for relay in stage.relays), what="all have worked")
    stage.wait_drained()
    assert_all_worked(stage)
    assert_sound(stage.check(), duplicates=range(1))
