"""SIGKILL at random and at critical points: nothing lost, order kept, duplicates bounded by what was in flight."""

from __future__ import annotations

from pillarbox.failpoints import POINTS
from tests.faults.conftest import MakeStage
from tests.faults.relays import IN_HAND, RelayProcess
from tests.faults.stage import TIMES, Stage, assert_sound
from tests.servers.rabbitmq import RabbitMQServer

EVENTS = 20_000
KEYS = 500
RELAYS = 3
AT_RANDOM = "at random"
DEATHS = [*POINTS, *4 * [AT_RANDOM]]
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
    relays = [stage.start() for _ in range(RELAYS)]
    deaths: list[str] = []
    with stage.under_load():
        for _ in range(TIMES):
            for death in stage.chance.sample(DEATHS, len(DEATHS)):
                # An event is dead-lettered after three crashes of its relays: settle those first that have two.
                stage.wait_until(lambda: stage.number(TWICE) == 0, what="no event has been hit twice")
                victim = relays.pop(stage.chance.randrange(RELAYS))
                doomed = victim if death == AT_RANDOM else replaced(stage, victim, death)
                relays.append(stage.start())
                if death == AT_RANDOM or death in WHEN_LEAVING:
                    stage.freeze_unsettled(doomed)
                    doomed.kill() if death == AT_RANDOM else doomed.terminate()
                    doomed.thaw()
                assert doomed.wait() == -9
                deaths.append(death)
        stage.wait_until(lambda: stage.ledger.count >= EVENTS * TIMES, what="enough was written")
    stage.wait_drained()
    sent_again = sum(death in SENT_AND_NOT_SETTLED for death in deaths)
    assert_sound(stage.judge(), duplicates=range(sent_again, len(deaths) * IN_HAND + 1))


def replaced(stage: Stage, relay: RelayProcess, point: str) -> RelayProcess:
    """Start another relay in its place, which crashes at that point."""
    relay.terminate()
    assert relay.wait() == 0
    count = 1 if point in ONCE else stage.chance.randint(1, 5)
    doomed = stage.start({"FAILPOINT": f"{point}:{count}"}, wait=False)
    if point in ONCE:
        # The lease of a relay killed before may end meanwhile, and its lanes may be free already.
        stage.wait_until(
            lambda: not doomed.running or stage.lanes_of(doomed) > SHARE_OF_FOUR, what=f"{doomed.name} has its share"
        )
    return doomed
