"""Bite after bite until everything is gone that was old enough when the first began.

What grows old meanwhile waits for the next time, or it would never end where much is sent. After each bite comes a
rest as long as the bite took: whatever the backlog, half of one connection is the most that this costs.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.retention import Retention
from pillarbox.core.store import Upkeep

BITE = 1000
"""Rows of each kind that go in one bite."""
SHORTEST_REST = 0.01


async def bites(upkeep: Upkeep, kept: Retention, *, clock: Clock | None = None) -> AsyncGenerator[int, None]:
    """How many rows or days went, for each bite. Raises what `Upkeep.prune` raises."""
    clock = clock or SystemClock()
    first = clock.monotonic()
    while True:
        began = clock.monotonic()
        if not (gone := await upkeep.prune(kept.since(began - first), most=BITE)):
            return
        yield gone
        await clock.sleep(max(SHORTEST_REST, clock.monotonic() - began))
