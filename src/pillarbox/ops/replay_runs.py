"""Run a replay: count, then copy in batches at a limited rate. An interrupted replay can be resumed.

Only a position is kept between batches, so that memory does not depend on the number of events.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.listing import Position
from pillarbox.admin.replay import HISTORY_SCANNED, Progress, Replay
from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.errors import CommandError
from pillarbox.core.statistics import COUNTED

BATCH = 1000
"""Copies per transaction."""

OnProgress = Callable[[Progress], None]


class Count(NamedTuple):
    """The number of matching deliveries."""

    found: int
    """`COUNTED + 1` stands for that many or more."""
    among: int | None = None
    """The number of rows that were read if reading stopped early; None: all of them."""

    @property
    def expected(self) -> int | None:
        """The total, if it is known."""
        return self.found if self.among is None else None


async def count(
    store: AdminStore, plan: Replay, *, queries: int | None = None, on_query: Callable[[int], None] | None = None
) -> Count:
    """Count the deliveries that match now, with at most `queries` statements; None: without limit. Changes nothing.

    `on_query` receives the number of rows that each statement but the last has read.
    """
    enough = min(plan.most or COUNTED + 1, COUNTED + 1)
    found, taken = 0, 0
    after: Position | None = None
    while True:
        more, after = await store.admin.replays.count(plan, enough=enough - found, scan=HISTORY_SCANNED, after=after)
        found, taken = found + more, taken + 1
        if after is None:
            return Count(found)
        if taken == queries:
            return Count(found, among=taken * HISTORY_SCANNED)
        if on_query is not None:
            on_query(HISTORY_SCANNED)


async def run(
    store: AdminStore,
    plan: Replay,
    *,
    by: str,
    expected: int | None = None,
    progress: OnProgress | None = None,
    clock: Clock | None = None,
) -> Progress:
    """Start a replay and run it; `progress` is called at the start and after every batch."""
    begun = await store.admin.replays.begin(plan, by=by, expected=expected)
    return await resume(store, begun, progress=progress, clock=clock)


async def resume(
    store: AdminStore, replay: Progress, *, progress: OnProgress | None = None, clock: Clock | None = None
) -> Progress:
    """Run the rest of a replay. Raises CommandError if another process resumes it in the meantime."""
    tell, clock = progress or _ignore, clock or SystemClock()
    rate, first, start = replay.plan.rate, replay.copied, clock.monotonic()
    tell(replay)
    while not replay.done:
        replay = await _copy_batch(store, replay, rate)
        tell(replay)
        if rate is not None and not replay.done:
            due = start + (replay.copied - first) / rate
            await clock.sleep(max(0.0, due - clock.monotonic()))
    return replay


async def _copy_batch(store: AdminStore, replay: Progress, rate: float | None) -> Progress:
    plan = replay.plan
    left = math.inf if plan.most is None else plan.most - replay.copied
    # At most one second's worth per batch, so that the rate has no bursts.
    limit = max(1, int(min(BATCH, left, rate or BATCH)))
    rows, more = await store.admin.replays.chosen(plan, limit=limit, after=replay.after, began=replay.began)
    after = more or (rows[-1].position if rows else replay.after)
    moved = await store.admin.replays.copy(replay, rows, after=after, done=more is None or left <= len(rows))
    if moved is None:
        raise CommandError(f"replay {replay.number} is being resumed by another process, which continues it")
    return moved


def _ignore(replay: Progress) -> None:
    """Report no progress."""
