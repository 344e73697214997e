"""Handlers that crash or block their process, or reject events: other keys are unaffected, no event is lost."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from pillarbox import Event, Outbox
from tests.faults import handling
from tests.faults.conftest import MakeStage
from tests.faults.relays import LEASE, MAX_IN_FLIGHT, SHORT_LEASE
from tests.faults.scenarios import refuse_now_and_then
from tests.faults.stage import Stage, assert_sound

EVENTS = 500
FEW = 50
MOST_CRASHES = 8


@pytest.fixture
def odd(make_stage: MakeStage, postgres_url: str) -> Stage:
    """A stage whose relays call a handler that does what an event says."""
    return make_stage(store=postgres_url, transport="handlers:tests.faults.handling:odd")


def record(stage: Stage, what: str, key: str) -> str:
    with psycopg.connect(stage.store) as connection:
        [event_id] = Outbox().record(connection, Event(stage.event_type, {"what": what}, key=key))
    return event_id


def test_a_handler_that_kills_its_process_harms_no_other_key(odd: Stage, tmp_path: Path) -> None:
    poison = record(odd, "kill", "poisoned")
    odd.write(FEW)
    crashes = 0
    relay = odd.start(SHORT_LEASE, wait=False)

    def only_poison_is_left() -> bool:
        nonlocal relay, crashes
        if not relay.running:
            assert relay.wait() == -9
            crashes += 1
            relay = odd.start(SHORT_LEASE, wait=False)
        return odd.number("SELECT count(*) FROM outbox_message WHERE event_id <> %s", poison) == 0

    odd.wait_until(only_poison_is_left, what="every other event is handled")
    assert 1 <= crashes <= MOST_CRASHES
    dead = odd.ids("SELECT event_id FROM outbox_dead_letter")
    assert set(dead) <= {poison}
    findings = odd.check_against((tmp_path / handling.NOTES).read_text().split(), dead=dead)
    assert_sound(findings, duplicates=range(crashes * MAX_IN_FLIGHT + 1))


def test_a_handler_that_blocks_the_event_loop_does_not_lose_the_lanes(odd: Stage, tmp_path: Path) -> None:
    relays = [odd.start(), odd.start()]
    odd.wait_until(lambda: all(odd.lanes_of(relay) == 32 for relay in relays), what="both have their share")
    owners = odd.query("SELECT lane, epoch, owner FROM outbox_lane ORDER BY lane")
    blocking = record(odd, "block", "blocking")
    odd.ledger.commit([("blocking", blocking)])
    odd.wait_until((tmp_path / handling.BLOCKING).exists, what="an event loop is blocked")
    [(blocked_at,)] = odd.query("SELECT now()")
    [blocked] = [relay for relay in relays if blocking in odd.waiting_for(relay)]
    [other] = [relay for relay in relays if relay is not blocked]
    odd.write(EVENTS)
    odd.wait_until(lambda: odd.waiting_for(other) == [], what="the other relay's keys are served")
    assert blocking in odd.waiting_for(blocked)
    odd.wait_until(lambda: odd.is_past(blocked_at, LEASE + 2), what="the event loop is blocked longer than a lease")
    (tmp_path / handling.ENOUGH).touch()
    odd.wait_drained()
    assert odd.query("SELECT lane, epoch, owner FROM outbox_lane ORDER BY lane") == owners
    assert odd.counted() == 0
    odd.stop_all()
    assert_sound(odd.check_against((tmp_path / handling.NOTES).read_text().split()), duplicates=range(1))


def test_a_handler_that_fails_blocks_its_own_key_only(make_stage: MakeStage, postgres_url: str, tmp_path: Path) -> None:
    stage = make_stage(store=postgres_url, transport="handlers:tests.faults.handling:refusing")
    assert_sound(refuse_now_and_then(stage, tmp_path / handling.NOTES, events=EVENTS), duplicates=range(1))
