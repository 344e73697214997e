"""A relay that stands still for longer than its lease, and then goes on as if nothing had happened."""

from __future__ import annotations

from tests.faults.relays import IN_HAND, LEASE
from tests.faults.stage import Stage, assert_nothing_lost

EVENTS = 2_000


def test_a_relay_that_comes_back_from_the_dead_is_fenced(stage: Stage) -> None:
    zombie = stage.start()
    stage.write(EVENTS)
    stage.freeze_at_work(zombie)
    [(frozen_at,)] = stage.query("SELECT now()")
    heir = stage.start()
    stage.wait_until(lambda: stage.lanes_of(heir) == 64, what="the heir has every lane")
    assert not stage.lease(zombie)
    overdue = "SELECT (now() > %s::timestamptz + %s * interval '1 second')::int"
    stage.wait_until(lambda: bool(stage.number(overdue, frozen_at, 3 * LEASE)), what="three leases went by")
    stage.write(EVENTS)
    zombie.thaw()
    stage.wait_until(lambda: bool(stage.lanes_of(zombie)), what="it notices, joins anew and gets its share")
    stage.wait_drained()
    assert stage.number("SELECT min(epoch) FROM outbox_lane") >= 2
    assert_nothing_lost(stage.judge(), most_duplicates=IN_HAND)
