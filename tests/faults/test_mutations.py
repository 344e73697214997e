"""The harness itself: if one guard of the relay is removed, the checker must detect the fault.

The tests of the same scenarios with every guard are in the other files of this folder.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import handling
from tests.faults.conftest import MakeStage
from tests.faults.scenarios import (
    delay_a_settlement,
    kill_a_silent_broker,
    refuse_now_and_then,
    resume_after_its_lease,
    unbind_the_queue,
)
from tests.servers.rabbitmq import RabbitMQServer

FEW = 500


def test_without_mandatory_the_loss_is_detected(
    make_stage: MakeStage, postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    stage = make_stage(store=postgres_url, transport=rabbitmq_server.url(), without="mandatory")
    assert unbind_the_queue(stage, events=FEW).lost


def test_without_waiting_for_the_confirm_the_loss_is_detected(
    make_stage: MakeStage, postgres_url: str, victim: RabbitMQServer
) -> None:
    stage = make_stage(store=postgres_url, transport=victim.url(), without="confirm")
    assert kill_a_silent_broker(stage, victim, events=FEW).lost


@pytest.mark.parametrize("database", ["postgres_url", "mariadb_url"])
def test_without_the_epoch_the_settlement_of_a_stale_relay_is_detected(
    make_stage: MakeStage, rabbitmq_server: RabbitMQServer, database: str, request: pytest.FixtureRequest
) -> None:
    store = request.getfixturevalue(database)
    stage = make_stage(store=store, transport=rabbitmq_server.url(), without="epoch")
    assert resume_after_its_lease(stage, events=FEW, leases=1, successor_works=False).stale


def test_without_the_lock_on_the_lane_the_settlement_during_a_takeover_is_detected(
    make_stage: MakeStage, postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    stage = make_stage(store=postgres_url, transport=rabbitmq_server.url(), without="lane-lock")
    assert delay_a_settlement(stage, events=FEW).stale


def test_without_holding_back_the_next_of_a_key_overtaking_is_detected(
    make_stage: MakeStage, postgres_url: str, tmp_path: Path
) -> None:
    stage = make_stage(store=postgres_url, transport="handlers:tests.faults.handling:refusing", without="held-back")
    assert refuse_now_and_then(stage, tmp_path / handling.NOTES, events=FEW).out_of_order
