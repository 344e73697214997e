"""Pruning in batches: to the end, with pauses."""

from __future__ import annotations

from datetime import timedelta

from pillarbox.core.rows import InboxRecord
from pillarbox.core.store import Retention
from pillarbox.pruning import BATCH_SIZE, SHORTEST_PAUSE, prune_in_batches
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.simulation import Simulation, simulate

HOUR = 3600.0


def test_data_that_passes_its_retention_period_meanwhile_stays() -> None:
    async def scenario(simulation: Simulation) -> None:
        store, clock = MemoryStore(clock=simulation.clock), simulation.clock
        records = store._tables.inbox
        long_ago, nearly = clock.now() - timedelta(hours=2), clock.now() - timedelta(minutes=59)
        records.update({InboxRecord("billing", f"old {n}"): long_ago for n in range(3 * BATCH_SIZE)})
        records.update({InboxRecord("billing", f"young {n}"): nearly for n in range(BATCH_SIZE)})
        batches = []
        async for deleted in prune_in_batches(store.pruning, Retention(inbox=HOUR), clock=clock):
            batches.append(deleted)
            await clock.sleep(10 * 60)
        assert batches == [BATCH_SIZE] * 3
        assert len(records) == BATCH_SIZE

    simulate(scenario, seed=1)


def test_a_pause_lasts_as_long_as_the_batch_before_it() -> None:
    async def scenario(simulation: Simulation) -> None:
        store, clock = MemoryStore(clock=simulation.clock), simulation.clock
        long_ago = clock.now() - timedelta(hours=2)
        store._tables.inbox.update({InboxRecord("billing", f"{n}"): long_ago for n in range(2 * BATCH_SIZE)})
        began, times = clock.monotonic(), []
        async for _ in prune_in_batches(store.pruning, Retention(inbox=HOUR), clock=clock):
            times.append(clock.monotonic() - began)
            await clock.sleep(5)
        assert len(times) == 2
        assert times[0] < SHORTEST_PAUSE
        assert times[1] >= 10

    simulate(scenario, seed=1)
