"""Bite after bite: to an end, and with rests."""

from __future__ import annotations

from datetime import timedelta

from pillarbox.core.row import InboxRecord
from pillarbox.core.store import BITE, SHORTEST_REST, Retention, bites
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.simulation import Simulation, simulate

HOUR = 3600.0


def test_it_takes_what_was_old_when_it_began_and_leaves_what_grows_old_meanwhile() -> None:
    async def story(simulation: Simulation) -> None:
        store, clock = MemoryStore(clock=simulation.clock), simulation.clock
        receipts = store._tables.receipts
        long_ago, nearly = clock.now() - timedelta(hours=2), clock.now() - timedelta(minutes=59)
        receipts.update({InboxRecord("billing", f"old {n}"): long_ago for n in range(3 * BITE)})
        receipts.update({InboxRecord("billing", f"young {n}"): nearly for n in range(BITE)})
        taken = []
        async for gone in bites(store.upkeep, Retention(receipts=HOUR), clock=clock):
            taken.append(gone)
            await clock.sleep(10 * 60)
        assert taken == [BITE] * 3
        assert len(receipts) == BITE

    simulate(story, seed=1)


def test_after_a_bite_comes_a_rest_as_long_as_the_bite() -> None:
    async def story(simulation: Simulation) -> None:
        store, clock = MemoryStore(clock=simulation.clock), simulation.clock
        long_ago = clock.now() - timedelta(hours=2)
        store._tables.receipts.update({InboxRecord("billing", f"{n}"): long_ago for n in range(2 * BITE)})
        began, times = clock.monotonic(), []
        async for _ in bites(store.upkeep, Retention(receipts=HOUR), clock=clock):
            times.append(clock.monotonic() - began)
            await clock.sleep(5)
        assert len(times) == 2
        assert times[0] < SHORTEST_REST
        assert times[1] >= 10

    simulate(story, seed=1)
