"""SIGKILL at random and at critical points: nothing lost, order kept, duplicates bounded by what was in flight."""

from __future__ import annotations

import pytest

from tests.faults.conftest import MakeStage
from tests.faults.scenarios import AT_RANDOM, CRASHES, duplicates_after, kill_relays
from tests.faults.stage import assert_sound
from tests.servers.rabbitmq import RabbitMQServer

EVENTS = 20_000
FEW = 4_000
KEYS = 500


def test_relays_killed_at_random_and_at_each_point(
    make_stage: MakeStage, postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    stage = make_stage(store=postgres_url, transport=rabbitmq_server.url(), keys=KEYS)
    crashes = [*CRASHES, *3 * [AT_RANDOM]]
    stage.rng.shuffle(crashes)
    assert_sound(kill_relays(stage, crashes, events=EVENTS), duplicates=duplicates_after(crashes))


@pytest.mark.parametrize("half", [0, 1])
def test_on_mariadb_relays_killed_at_random_and_at_each_point(
    make_stage: MakeStage, mariadb_url: str, rabbitmq_server: RabbitMQServer, half: int
) -> None:
    stage = make_stage(store=mariadb_url, transport=rabbitmq_server.url(), keys=KEYS)
    crashes = [*CRASHES[half::2]]
    stage.rng.shuffle(crashes)
    assert_sound(kill_relays(stage, crashes, events=FEW), duplicates=duplicates_after(crashes))
