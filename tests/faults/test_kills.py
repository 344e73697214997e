"""kill -9 at random: nothing lost, nothing invented, order kept, and duplicates no more than what was in hand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.faults.conftest import MakeStage
from tests.faults.relays import IN_HAND
from tests.faults.stage import TIMES, assert_nothing_lost
from tests.servers.rabbitmq import RabbitMQServer

EVENTS = 8_000
KILLS = 4


def test_relays_killed_at_random(make_stage: MakeStage, postgres_url: str, rabbitmq_server: RabbitMQServer) -> None:
    stage = make_stage(store=postgres_url, transport=rabbitmq_server.url(), keys=500)
    relays = [stage.start() for _ in range(3)]
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(stage.write, EVENTS)
        for kill in range(KILLS):
            enough = EVENTS * TIMES * (kill + stage.chance.random()) / (KILLS + 2)
            stage.wait_until(lambda enough=enough: stage.delivered() >= enough, what=f"{enough:g} events delivered")
            victim = relays.pop(stage.chance.randrange(3))
            stage.freeze_at_work(victim)
            victim.kill()
            assert victim.wait() == -9
            relays.append(stage.start())
        writing.result()
    stage.wait_drained(bound=120)
    assert_nothing_lost(stage.judge(), most_duplicates=KILLS * IN_HAND)
