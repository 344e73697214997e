"""Replays from beginning to end: counted first, copied in bites, no faster than was asked for, and gone on with later.

Nothing is kept in between but a position: whether a replay has a thousand events or ten million is all the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.listing import Position
from pillarbox.admin.replay import LOOK, Progress, Replay
from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.errors import PillarboxError
from pillarbox.core.statistics import COUNTED

BITE = 1000
"""Copies per transaction."""

Told = Callable[[Progress], None]


class ReplayTaken(PillarboxError):
    """Somebody else goes on with the same replay."""


class Count(NamedTuple):
    """How many events it would be."""

    found: int
    """`COUNTED + 1` stands for that many or more."""
    among: int | None = None
    """Only the first so many rows that it could be were looked at; None: all of them."""

    @property
    def expected(self) -> int | None:
        """What is known of how many it will be."""
        return self.found if self.among is None else None


async def count(
    store: AdminStore, plan: Replay, *, looks: int | None = None, looked: Callable[[int], None] | None = None
) -> Count:
    """How many it would be now, from at most so many looks; None: from as many as it takes. Changes nothing.

    `looked` is told how many rows each look went over that was not the last.
    """
    enough = min(plan.most or COUNTED + 1, COUNTED + 1)
    found, taken = 0, 0
    after: Position | None = None
    while True:
        more, after = await store.admin.replays.count(plan, enough=enough - found, look=LOOK, after=after)
        found, taken = found + more, taken + 1
        if after is None:
            return Count(found)
        if taken == looks:
            return Count(found, among=taken * LOOK)
        if looked is not None:
            looked(LOOK)


async def run(
    store: AdminStore,
    plan: Replay,
    *,
    by: str,
    expected: int | None = None,
    progress: Told | None = None,
    clock: Clock | None = None,
) -> Progress:
    """All of it; `progress` is told how far it is at the beginning and after every bite."""
    begun = await store.admin.replays.begin(plan, by=by, expected=expected)
    return await go_on(store, begun, progress=progress, clock=clock)


async def go_on(
    store: AdminStore, replay: Progress, *, progress: Told | None = None, clock: Clock | None = None
) -> Progress:
    """The rest of it. Raises ReplayTaken if somebody else goes on with it meanwhile."""
    tell, clock = progress or _nobody, clock or SystemClock()
    rate, first, start = replay.plan.rate, replay.copied, clock.monotonic()
    tell(replay)
    while not replay.done:
        replay = await _bite(store, replay, rate)
        tell(replay)
        if rate is not None and not replay.done:
            due = start + (replay.copied - first) / rate
            await clock.sleep(max(0.0, due - clock.monotonic()))
    return replay


async def _bite(store: AdminStore, replay: Progress, rate: float | None) -> Progress:
    plan = replay.plan
    left = math.inf if plan.most is None else plan.most - replay.copied
    # A second's worth at a time: what is asked for is a rate, not bursts.
    limit = max(1, int(min(BITE, left, rate or BITE)))
    rows, more = await store.admin.replays.chosen(plan, limit=limit, after=replay.after, began=replay.began)
    after = more or (rows[-1].place if rows else replay.after)
    moved = await store.admin.replays.copy(replay, rows, after=after, done=more is None or left <= len(rows))
    if moved is None:
        raise ReplayTaken(f"replay {replay.number} is gone on with by somebody else: leave it to them")
    return moved


def _nobody(replay: Progress) -> None:
    """Nobody watches."""
