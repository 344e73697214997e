"""The harness itself: if one guard of the relay is removed, the checker must detect the fault.

The tests of the same scenarios with every guard are in the other files of this folder.
"""

from __future__ import annotations

from pathlib import Path

from tests.faults import handling
from tests.faults.conftest import MakeStage
from tests.faults.scenarios import (
    come_back_from_the_dead,
    hold_up_a_settlement,
    kill_a_silent_broker,
    refuse_now_and_then,
    unbind_the_queue,
)
from tests.servers.rabbitmq import RabbitMQServer

FEW = 500


def test_without_mandatory_the_loss_is_found(
    make_stage: MakeStage, postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    stage = make_stage(store=postgres_url, transport=rabbitmq_server.url(), without="mandatory")
    assert unbind_the_queue(stage, events=FEW).lost


def test_without_waiting_for_the_confirm_the_loss_is_found(
    make_stage: MakeStage, postgres_url: str, victim: RabbitMQServer
) -> None:
    stage = make_stage(store=postgres_url, transport=victim.url(), without="confirm")
    assert kill_a_silent_broker(stage, victim, events=FEW).lost


def test_without_the_epoch_the_settlement_of_a_zombie_is_found(
    make_stage: MakeStage, postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    stage = make_stage(store=postgres_url, transport=rabbitmq_server.url(), without="epoch")
    assert come_back_from_the_dead(stage, events=FEW, leases=1, heir_works=False).stale


def test_without_the_lock_on_the_lane_the_settlement_beside_a_takeover_is_found(
    make_stage: MakeStage, postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    stage = make_stage(store=postgres_url, transport=rabbitmq_server.url(), without="lane-lock")
    assert hold_up_a_settlement(stage, events=FEW).stale


def test_without_holding_back_the_next_of_a_key_the_overtaking_is_found(
    make_stage: MakeStage, postgres_url: str, tmp_path: Path
) -> None:
    stage = make_stage(store=postgres_url, transport="handlers:tests.faults.handling:refusing", without="held-back")
    assert refuse_now_and_then(stage, tmp_path / handling.NOTES, events=FEW).out_of_order
