"""Orphaned queues: a new owner of their lanes finds them soon, while other events arrive."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pillarbox import Event
from pillarbox.core.fetch import Bounds, Ready
from pillarbox.core.lane import RelayRegistration, epochs_of
from pillarbox.core.message import Held
from pillarbox.core.outcome import Decision, Resolved, Retry
from pillarbox.relay import fetch
from pillarbox.testing.simulation import Simulation, simulate
from tests.simulation.stage import CONFIG, Stage, ids


def test_the_search_for_orphaned_queues_goes_on_while_events_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "ORPHANS_PER_STEP", 5)

    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation, replace(CONFIG, poll_interval="1s", adaptive=False, wakeup="none"))
        store = stage.store
        queues = 40
        for number in range(queues):
            stage.record(
                *(Event("a", {}, key=f"k{number:03}", event_id=f"{place}{number}") for place in ("first", "next"))
            )
        stage.record(Event("a", {}, key="z", event_id="orphan"))
        await store.lanes.join(RelayRegistration(id="before"), lease=60)
        epochs = epochs_of(await store.lanes.acquire("before", limit=store.capabilities.lanes))
        found = await store.messages.fetch(Ready(lanes=list(epochs), bounds=Bounds(limit=1000, quota=1000)))
        first = [message for message in found if message.event_id.startswith("first")]
        later = Retry(delay=3600, error="no")
        await store.writes.settle(epochs, [Decision(message, later, "a") for message in first])
        rest = [Resolved(message, "a") for message in found if message not in first]
        await store.writes.hold(epochs, rest, Held.WAITING)
        await store.lanes.release("before")
        began = stage.now
        async with stage.running():
            while "orphan" not in ids(stage.transport.deliveries):
                stage.record(Event("a", {}))
                await stage.rest(0.02)
                # A poll with an unfinished search is followed by another at once: two steps per interval, not one.
                assert stage.now - began < 4.5

    simulate(scenario, seed=1)
