"""Deletes data past its retention period in small batches, so that other writers of the database are not delayed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.store import Pruning, Retention

BATCH_SIZE = 1000
"""Rows of each kind that one batch deletes at most."""
SHORTEST_PAUSE = 0.01
"""Seconds between two batches at least; a pause lasts as long as the batch before it."""


async def prune_in_batches(
    pruning: Pruning, retention: Retention, *, clock: Clock | None = None
) -> AsyncGenerator[int, None]:
    """Delete until nothing is past its retention period; yields the rows or days of each batch.

    Data that passes its retention period meanwhile stays. Raises what `Pruning.prune` raises.
    """
    clock = clock or SystemClock()
    first = clock.monotonic()
    while True:
        began = clock.monotonic()
        if not (deleted := await pruning.prune(retention.since(began - first), limit=BATCH_SIZE)):
            return
        yield deleted
        await clock.sleep(max(SHORTEST_PAUSE, clock.monotonic() - began))


async def prune_each_kind(prunes: Iterable[Callable[[], Awaitable[int]]]) -> int:
    """Call each of `prunes`, one per kind of row; returns how many rows they deleted.

    The database may refuse to delete rows of one kind, for example because a foreign key of the application refers to
    them. The other kinds are deleted all the same. Raises RowsRefusedError once nothing else is deleted.
    """
    deleted = 0
    refused: RowsRefusedError | None = None
    for prune in prunes:
        try:
            deleted += await prune()
        except RowsRefusedError as error:
            refused = refused or error
    if refused is not None and not deleted:
        raise refused
    return deleted
