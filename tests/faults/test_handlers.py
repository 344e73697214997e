"""Handlers that take their process with them or stand in its way: other keys are unharmed, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from pillarbox import Event, Outbox
from tests.faults.conftest import MakeStage
from tests.faults.ledger import judge
from tests.faults.relays import IN_HAND, LEASE
from tests.faults.stage import Stage, assert_nothing_lost

EVENTS = 500
FEW = 50
MOST_CRASHES = 8
HANDLERS = f"""
import os, signal, time
from pillarbox.transports.handlers import Handlers

handlers = Handlers()

@handlers.on("*", name="notes")
async def note(event, context):
    what = event.payload.get("what")
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "block":
        time.sleep({LEASE + 2})
    with open("notes.txt", "a") as notes:
        notes.write(event.event_id + "\\n")
"""


@pytest.fixture
def handled(make_stage: MakeStage, postgres_url: str, tmp_path: Path) -> Stage:
    """A stage whose relays call a handler that notes every event in a file before it is done."""
    (tmp_path / "handling.py").write_text(HANDLERS)
    (tmp_path / "notes.txt").touch()
    return make_stage(store=postgres_url, transport="handlers:handling:handlers")


def record(stage: Stage, what: str, key: str) -> str:
    with psycopg.connect(stage.store) as connection:
        [event_id] = Outbox().record(connection, Event(stage.event_type, {"what": what}, key=key))
    return event_id


def test_a_handler_that_kills_its_process_harms_no_other_key(handled: Stage, tmp_path: Path) -> None:
    poison = record(handled, "kill", "poisoned")
    handled.write(FEW)
    crashes = 0
    relay = handled.start(wait=False)

    def only_poison_is_left() -> bool:
        nonlocal relay, crashes
        if not relay.running:
            assert relay.wait() == -9
            crashes += 1
            relay = handled.start(wait=False)
        return handled.number("SELECT count(*) FROM outbox_message WHERE event_id <> %s", poison) == 0

    handled.wait_until(only_poison_is_left, what="every other event is handled")
    assert 1 <= crashes <= MOST_CRASHES
    dead = [str(row[0]) for row in handled.query("SELECT event_id FROM outbox_dead")]
    findings = judge(handled.ledger, (tmp_path / "notes.txt").read_text().split(), dead=dead)
    assert_nothing_lost(findings, most_duplicates=crashes * IN_HAND)
    assert set(dead) <= {poison}


def test_a_handler_that_blocks_the_event_loop_does_not_lose_the_lanes(handled: Stage, tmp_path: Path) -> None:
    blocked, bystander = handled.start(), handled.start()
    relays = (blocked, bystander)
    handled.wait_until(lambda: all(handled.lanes_of(relay) == 32 for relay in relays), what="both have their share")
    epochs = handled.query("SELECT lane, epoch, owner FROM outbox_lane ORDER BY lane")
    handled.ledger.commit([("blocking", record(handled, "block", "blocking"))])
    handled.write(EVENTS)
    handled.wait_drained()
    assert handled.query("SELECT lane, epoch, owner FROM outbox_lane ORDER BY lane") == epochs
    handled.stop_all()
    findings = judge(handled.ledger, (tmp_path / "notes.txt").read_text().split())
    assert_nothing_lost(findings, most_duplicates=0)
