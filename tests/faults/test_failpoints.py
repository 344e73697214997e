"""kill -9 where it hurts most: at each named point between reading and giving lanes back."""

from __future__ import annotations

import pytest

from tests.faults.relays import IN_HAND
from tests.faults.stage import Stage, assert_nothing_lost

EVENTS = 1_500


@pytest.mark.parametrize("point", ["after-read", "before-send", "after-confirm", "before-settle", "after-settle"])
def test_a_relay_that_dies_on_the_way_loses_nothing(stage: Stage, point: str) -> None:
    stage.write(EVENTS)
    doomed = stage.start(wait=False, PILLARBOX_FAILPOINT=f"{point}:3")
    assert doomed.wait() == -9
    assert stage.at_work(doomed)
    stage.start()
    stage.wait_drained()
    assert_nothing_lost(stage.judge(), most_duplicates=IN_HAND)


def test_a_relay_that_dies_while_it_gives_lanes_back_loses_nothing(stage: Stage) -> None:
    doomed = stage.start(PILLARBOX_FAILPOINT="before-release:1")
    stage.wait_until(lambda: stage.lanes_of(doomed) == 64, what="it owns every lane")
    stage.start(wait=False)
    stage.write(EVENTS)
    assert doomed.wait() == -9
    assert stage.lanes_of(doomed)
    stage.wait_drained()
    assert_nothing_lost(stage.judge(), most_duplicates=IN_HAND)


def test_a_relay_that_dies_while_it_drains_loses_nothing(stage: Stage) -> None:
    doomed = stage.start(PILLARBOX_FAILPOINT="during-drain:1")
    stage.write(EVENTS)
    stage.freeze_at_work(doomed)
    doomed.terminate()
    doomed.thaw()
    assert doomed.wait() == -9
    assert stage.at_work(doomed)
    stage.start()
    stage.wait_drained()
    assert_nothing_lost(stage.judge(), most_duplicates=IN_HAND)
