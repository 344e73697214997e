"""2,400 events through relays and listeners that are killed at random: everybody is told everything, once.

What shall be told is worked out here from the inputs alone. The seed is printed, so that a failing run can be had
again.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from apps.notifications.tables import NOTIFICATIONS
from apps.notifications.words import Audience, Channel
from pillarbox import Event
from tests.apps.notifications import broker
from tests.apps.notifications.faults.conftest import wait_for
from tests.apps.notifications.processes import Fleet, Process
from tests.apps.notifications.town import Told, Town

EVENTS = 2_400
AGGREGATES = 40
"""Of each audience. The even ones have one user, the odd ones two."""
BATCH = 150
KILLS = 12
BOUND = 180.0


@dataclass
class Inputs:
    """Who lives where, what was recorded, and so what has to come of it."""

    chance: random.Random
    wanted: dict[Audience, list[Told]] = field(default_factory=lambda: {audience: [] for audience in Audience})

    def users(self, audience: Audience, aggregate_id: int) -> list[int]:
        first = 10_000 * (1 + list(Audience).index(audience)) + 10 * aggregate_id
        return [first, first + 1][: 1 + aggregate_id % 2]

    def channel(self, user_id: int) -> Channel:
        """The second user of an aggregate has chosen otherwise."""
        return Channel.PUSH if user_id % 10 else Channel.EMAIL

    def event(self, number: int) -> Event:
        """The next one, and a note of whom it is for."""
        audience = self.chance.choice(list(Audience))
        aggregate_id = self.chance.randrange(AGGREGATES)
        told = self.users(audience, aggregate_id)
        event_id, payload, headers = f"evt-{number:05}", {}, {}
        if self.chance.random() < 0.3:
            told = [self.chance.choice(told)]
            payload, headers = {"user_id": told[0]}, {"recipientType": "SINGLE"}
        self.wanted[audience] += [(event_id, user_id, str(self.channel(user_id))) for user_id in told]
        return Event(
            "TABLE_FREED",
            payload,
            event_id=event_id,
            aggregate_type=audience,
            aggregate_id=str(aggregate_id),
            headers=headers,
        )

    def populate(self, town: Town) -> None:
        for audience in Audience:
            town.offer(Channel.EMAIL, audience=audience)
            for aggregate_id in range(AGGREGATES):
                users = self.users(audience, aggregate_id)
                town.settle(*users, audience=audience, aggregate_id=aggregate_id)
                for user_id in users[1:]:
                    town.choose(user_id, Channel.EMAIL, enabled=False)
                    town.choose(user_id, Channel.PUSH, enabled=True)


def progress(town: Town) -> int:
    """At least as many as there are notifications, which would be dear to count again and again."""
    highest = " + ".join(f"(SELECT coalesce(max(id), 0) FROM {table.name})" for table in NOTIFICATIONS.values())
    return town.number(f"SELECT {highest}")


def notified(town: Town) -> int:
    return sum(town.number(f"SELECT count(*) FROM {table.name}") for table in NOTIFICATIONS.values())


def waiting(town: Town) -> int:
    return town.number("SELECT count(*) FROM outbox_message")


def test_random_kills_of_relays_and_listeners_lose_nothing_and_tell_nobody_twice(
    postgres_town: Town, fleet: Fleet, rabbit: str
) -> None:
    seed = int(os.environ.get("FAULTS_SEED", random.randrange(2**32)))
    print(f"FAULTS_SEED={seed}")
    town, inputs = postgres_town, Inputs(random.Random(seed))
    inputs.populate(town)
    events = [inputs.event(number) for number in range(EVENTS)]
    total = sum(len(told) for told in inputs.wanted.values())
    start: dict[str, Callable[[], Process]] = {"relay": fleet.relay, "listener": fleet.listener}
    running = {kind: [start[kind](), start[kind]()] for kind in start}
    while len(events) > KILLS * BATCH:
        town.record(*(events.pop() for _ in range(BATCH)))

    victims = ["relay", "listener"] * (KILLS // 2)
    inputs.chance.shuffle(victims)
    killed: Counter[tuple[str, bool]] = Counter()
    for kill, kind in enumerate(victims):
        # The last kill comes at three quarters of the way, so that listeners always have something to do.
        goal = total * (kill + 1) * 3 // (KILLS * 4)
        wait_for(lambda goal=goal: progress(town) >= goal, fleet, f"{goal} of {total} are told", bound=BOUND)  # type: ignore[misc]
        # Relays are quicker: they get something to do just now, and are met in the middle of it.
        town.record(*(events.pop() for _ in range(BATCH)))
        wait_for(lambda: waiting(town) < BATCH, fleet, "relays are at it", bound=BOUND)
        victim = running[kind].pop(inputs.chance.randrange(2))
        amid = waiting(town) > 0 if kind == "relay" else notified(town) < total
        victim.kill()
        assert victim.wait() == -signal.SIGKILL, victim.story()
        killed[kind, amid] += 1
        running[kind].append(start[kind]())
    print(f"killed, and whether there was work to do: {dict(killed)}")
    assert events == []

    wait_for(lambda: progress(town) >= total and notified(town) >= total, fleet, f"{total} are told", bound=BOUND)
    left = [process for processes in running.values() for process in processes]
    for process in left:
        process.terminate()
    assert [process.wait() for process in left] == [0] * 4
    for audience in Audience:
        assert town.told(audience) == sorted(inputs.wanted[audience])
        assert broker.ready(rabbit, f"{audience.queue}.dlq") == 0
    assert town.asked_for() == sorted(told for audience in Audience for told in inputs.wanted[audience])
    assert waiting(town) == town.number("SELECT count(*) FROM outbox_dead_letter") == 0
    assert killed["relay", True] > 0
    assert killed["listener", True] > 0
