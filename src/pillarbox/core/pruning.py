"""Bite after bite until everything is gone that was old enough when the first began.

What grows old meanwhile waits for the next time, or it would never end where much is sent. After each bite comes a
rest as long as the bite took: whatever the backlog, half of one connection is the most that this costs.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.errors import RowsRefusedError
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


async def every_kind(prunes: Iterable[Callable[[], Awaitable[int]]]) -> int:
    """How many rows of all kinds went. A kind that the database keeps, for a foreign key of somebody, keeps no other:
    RowsRefusedError is raised once nothing else goes."""
    gone = 0
    refused: RowsRefusedError | None = None
    for prune in prunes:
        try:
            gone += await prune()
        except RowsRefusedError as error:
            refused = refused or error
    if refused is not None and not gone:
        raise refused
    return gone
