"""The harness on further engines: without one guard of the relay, the same fault makes the checker fail."""

from __future__ import annotations

import pytest

from pillarbox.ops.drill.checker import Findings, check
from tests.extremes.engines import Sending
from tests.extremes.linked import QUICK
from tests.faults.conftest import MakeStage
from tests.faults.relays import MAX_IN_FLIGHT
from tests.faults.scenarios import delay_a_settlement
from tests.faults.stage import assert_sound
from tests.servers.rabbitmq import RabbitMQServer

EVENTS = 200
FEW = 500
UNCONFIRMED = pytest.mark.parametrize("sending", ["kafka", "webhook"], indirect=True)


def kill_during_an_outage(sending: Sending, *program: str) -> Findings:
    """A relay is killed while its transport is unavailable, and the next one continues after the outage."""
    scene, link = sending.scene, sending.link
    relay = scene.start(QUICK, program=program or ("pillarbox",))
    scene.write(EVENTS)
    scene.wait_drained()
    warnings = relay.warnings()
    with link.down():
        scene.write(EVENTS)
        scene.wait_until(
            lambda: relay.warnings() > warnings or scene.pending() == 0, what="the relay notices the outage, or settles"
        )
        relay.end()
    scene.start(QUICK)
    scene.wait_drained()
    scene.stop()
    return check(scene.ledger, sending.received())


@UNCONFIRMED
def test_a_relay_that_is_killed_during_an_outage_loses_nothing(sending: Sending) -> None:
    assert_sound(kill_during_an_outage(sending), duplicates=range(MAX_IN_FLIGHT + 1))


@UNCONFIRMED
def test_without_waiting_for_the_confirm_the_loss_is_detected(sending: Sending) -> None:
    assert kill_during_an_outage(sending, "tests.faults.program", "never", "confirm").lost


def test_on_mariadb_lanes_are_not_taken_from_under_a_settlement(
    make_stage: MakeStage, mariadb_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    stage = make_stage(store=mariadb_url, transport=rabbitmq_server.url())
    findings = delay_a_settlement(stage, events=FEW)
    assert stage.counted() == 0
    assert_sound(findings, duplicates=range(MAX_IN_FLIGHT + 1))


def test_on_mariadb_without_the_lock_on_the_lane_the_settlement_during_a_takeover_is_detected(
    make_stage: MakeStage, mariadb_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    stage = make_stage(store=mariadb_url, transport=rabbitmq_server.url(), without="lane-lock")
    assert delay_a_settlement(stage, events=FEW).stale
