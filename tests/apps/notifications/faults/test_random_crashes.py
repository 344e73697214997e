"""2,400 events through relays and listeners that are killed at random: every notification exists once.

The expected notifications are derived from the inputs alone. The test prints its seed, so that a failed run can be
repeated.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from apps.notifications.domain import Audience, Channel
from apps.notifications.tables import NOTIFICATIONS
from pillarbox import Event
from tests.apps.notifications import broker
from tests.apps.notifications.app_database import AppDatabase, Notified
from tests.apps.notifications.faults.conftest import wait_for
from tests.apps.notifications.processes import Fleet, Process

EVENTS = 2_400
AGGREGATES = 40
"""Aggregates per audience. Even ones have one user, odd ones two."""
BATCH = 150
KILLS = 12
BOUND = 180.0


@dataclass
class Inputs:
    """Users, events, and the notifications that must result."""

    rng: random.Random
    wanted: dict[Audience, list[Notified]] = field(default_factory=lambda: {audience: [] for audience in Audience})

    def users(self, audience: Audience, aggregate_id: int) -> list[int]:
        first = 10_000 * (1 + list(Audience).index(audience)) + 10 * aggregate_id
        return [first, first + 1][: 1 + aggregate_id % 2]

    def channel(self, user_id: int) -> Channel:
        """The second user of an aggregate prefers PUSH."""
        return Channel.PUSH if user_id % 10 else Channel.EMAIL

    def event(self, number: int) -> Event:
        """The next event; its expected notifications are added to `wanted`."""
        audience = self.rng.choice(list(Audience))
        aggregate_id = self.rng.randrange(AGGREGATES)
        recipients = self.users(audience, aggregate_id)
        event_id, payload, headers = f"evt-{number:05}", {}, {}
        if self.rng.random() < 0.3:
            recipients = [self.rng.choice(recipients)]
            payload, headers = {"user_id": recipients[0]}, {"recipientType": "SINGLE"}
        self.wanted[audience] += [(event_id, user_id, str(self.channel(user_id))) for user_id in recipients]
        return Event(
            "TABLE_FREED",
            payload,
            event_id=event_id,
            aggregate_type=audience,
            aggregate_id=str(aggregate_id),
            headers=headers,
        )

    def populate(self, app: AppDatabase) -> None:
        for audience in Audience:
            app.set_defaults(Channel.EMAIL, audience=audience)
            for aggregate_id in range(AGGREGATES):
                users = self.users(audience, aggregate_id)
                app.add_users(*users, audience=audience, aggregate_id=aggregate_id)
                for user_id in users[1:]:
                    app.set_preference(user_id, Channel.EMAIL, enabled=False)
                    app.set_preference(user_id, Channel.PUSH, enabled=True)


def progress(app: AppDatabase) -> int:
    """An upper bound of the number of notifications, because counting them repeatedly would be slow."""
    highest = " + ".join(f"(SELECT coalesce(max(id), 0) FROM {table.name})" for table in NOTIFICATIONS.values())
    return app.number(f"SELECT {highest}")


def notified(app: AppDatabase) -> int:
    return sum(app.number(f"SELECT count(*) FROM {table.name}") for table in NOTIFICATIONS.values())


def waiting(app: AppDatabase) -> int:
    return app.number("SELECT count(*) FROM outbox_message")


def test_random_kills_of_relays_and_listeners_lose_and_duplicate_nothing(
    postgres_app: AppDatabase, fleet: Fleet, rabbit: str
) -> None:
    seed = int(os.environ.get("FAULTS_SEED", random.randrange(2**32)))
    print(f"FAULTS_SEED={seed}")
    app, inputs = postgres_app, Inputs(random.Random(seed))
    inputs.populate(app)
    events = [inputs.event(number) for number in range(EVENTS)]
    total = sum(len(expected) for expected in inputs.wanted.values())
    start: dict[str, Callable[[], Process]] = {"relay": fleet.relay, "listener": fleet.listener}
    running = {kind: [start[kind](), start[kind]()] for kind in start}
    while len(events) > KILLS * BATCH:
        app.record(*(events.pop() for _ in range(BATCH)))

    victims = ["relay", "listener"] * (KILLS // 2)
    inputs.rng.shuffle(victims)
    killed: Counter[tuple[str, bool]] = Counter()
    for kill, kind in enumerate(victims):
        # The last kill comes after three quarters of the notifications, so that listeners are always busy.
        goal = total * (kill + 1) * 3 // (KILLS * 4)
        wait_for(lambda goal=goal: progress(app) >= goal, fleet, f"{goal} of {total} notifications exist", bound=BOUND)  # type: ignore[misc]
        # Relays are faster: record a batch now, so that the kill hits them while they publish it.
        app.record(*(events.pop() for _ in range(BATCH)))
        wait_for(lambda: waiting(app) < BATCH, fleet, "the relays publish", bound=BOUND)
        victim = running[kind].pop(inputs.rng.randrange(2))
        busy = waiting(app) > 0 if kind == "relay" else notified(app) < total
        victim.kill()
        assert victim.wait() == -signal.SIGKILL, victim.log_text()
        killed[kind, busy] += 1
        running[kind].append(start[kind]())
    print(f"killed processes, and whether they were busy: {dict(killed)}")
    assert events == []

    wait_for(
        lambda: progress(app) >= total and notified(app) >= total,
        fleet,
        f"all {total} notifications exist",
        bound=BOUND,
    )
    left = [process for processes in running.values() for process in processes]
    for process in left:
        process.terminate()
    assert [process.wait() for process in left] == [0] * 4
    for audience in Audience:
        assert app.notifications(audience) == sorted(inputs.wanted[audience])
        assert broker.ready(rabbit, f"{audience.queue}.dlq") == 0
    assert app.delivery_requests() == sorted(one for audience in Audience for one in inputs.wanted[audience])
    assert waiting(app) == app.number("SELECT count(*) FROM outbox_dead_letter") == 0
    assert killed["relay", True] > 0
    assert killed["listener", True] > 0
