"""SIGKILL at random and at critical points: nothing lost, order kept, duplicates bounded by what was in flight."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pillarbox.failpoints import POINTS
from tests.faults.conftest import MakeStage
from tests.faults.relays import MAX_IN_FLIGHT, RelayProcess
from tests.faults.stage import TIMES, Stage, assert_sound
from tests.servers.rabbitmq import RabbitMQServer

EVENTS = 20_000
FEW = 4_000
KEYS = 500
RELAYS = 3
AT_RANDOM = "at random"
CRASHES = [*POINTS, *4 * [AT_RANDOM]]
WHEN_LEAVING = {"before-drain", "after-drain"}
ONCE = {"before-release", "after-release"} | WHEN_LEAVING
"""Points that a relay reaches when others join, or when it leaves."""
SHARE_OF_FOUR = 16
TWICE = "SELECT count(*) FROM outbox_message WHERE attempts > 1"
SENT_AND_NOT_SETTLED = {AT_RANDOM, "after-confirm", "before-settle"}
"""Points after which a crash causes duplicates."""


def test_relays_killed_at_random_and_at_each_point(
    make_stage: MakeStage, postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    stage = make_stage(store=postgres_url, transport=rabbitmq_server.url(), keys=KEYS)
    kill_relays(stage, stage.rng.sample(CRASHES, len(CRASHES)), events=EVENTS)


@pytest.mark.parametrize("half", [0, 1])
def test_on_mariadb_relays_killed_at_random_and_at_each_point(
    make_stage: MakeStage, mariadb_url: str, rabbitmq_server: RabbitMQServer, half: int
) -> None:
    stage = make_stage(store=mariadb_url, transport=rabbitmq_server.url(), keys=KEYS)
    crashes = [*POINTS, AT_RANDOM][half::2]
    kill_relays(stage, stage.rng.sample(crashes, len(crashes)), events=FEW)


def kill_relays(stage: Stage, points: Sequence[str], *, events: int) -> None:
    """Kill one of several relays at each of these points under load, and check what arrived."""
    relays = [stage.start() for _ in range(RELAYS)]
    crashes: list[str] = []
    with stage.under_load():
        for _ in range(TIMES):
            for crash in points:
                # An event is dead-lettered after three crashes of its relays: settle those first that have two.
                stage.wait_until(lambda: stage.number(TWICE) == 0, what="no event has been hit twice")
                victim = relays.pop(stage.rng.randrange(RELAYS))
                target = victim if crash == AT_RANDOM else replaced(stage, victim, crash)
                relays.append(stage.start())
                if crash == AT_RANDOM or crash in WHEN_LEAVING:
                    stage.freeze_unsettled(target)
                    target.kill() if crash == AT_RANDOM else target.terminate()
                    target.thaw()
                assert target.wait() == -9
                crashes.append(crash)
        stage.wait_until(lambda: stage.ledger.count >= events * TIMES, what="enough was written")
    stage.wait_drained()
    sent_again = sum(crash in SENT_AND_NOT_SETTLED for crash in crashes)
    assert_sound(stage.check(), duplicates=range(sent_again, len(crashes) * MAX_IN_FLIGHT + 1))


def replaced(stage: Stage, relay: RelayProcess, point: str) -> RelayProcess:
    """Start another relay in its place, which crashes at that point."""
    relay.terminate()
    assert relay.wait() == 0
    count = 1 if point in ONCE else stage.rng.randint(1, 5)
    target = stage.start({"FAILPOINT": f"{point}:{count}"}, wait=False)
    if point in ONCE:
        # The lease of a relay killed before may end meanwhile, and its lanes may be free already.
        stage.wait_until(
            lambda: not target.running or stage.lanes_of(target) > SHARE_OF_FOUR, what=f"{target.name} has its share"
        )
    return target
