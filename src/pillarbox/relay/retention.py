"""Retention and reports: what the owner of the first lane does for all relays, and what each relay reports.

Retention deletes in small steps, between two rounds of the coordinator. Statistics are counted as decisions are written
and reported every ten seconds.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from pillarbox.core.errors import RowsRefusedError, StoreUnavailableError
from pillarbox.core.observations import Pruned, StoreFailed
from pillarbox.core.statistics import EVERY as REPORT_EVERY
from pillarbox.core.statistics import OUTBOX, BacklogStatistics, DeliveryStatistics
from pillarbox.pruning import prune_in_batches

if TYPE_CHECKING:
    from pillarbox.relay.supervisor import RelayContext

EVERY = 60.0
"""Seconds between two searches for data past its retention period."""


class RetentionJob:
    """Deletes data past its retention period."""

    def __init__(self, context: RelayContext) -> None:
        self._context = context
        self._kept = context.config.retention.in_seconds
        self._next = 0.0

    async def run(self, *, until: float) -> None:
        """Delete until nothing is past its retention period or that time is reached; the next call continues."""
        context, upkeep = self._context, self._context.store.upkeep
        now = context.clock.monotonic()
        if now < self._next or not context.ownership.owns(0):
            return
        await context.store.schema.prepare()
        deleted = 0
        try:
            async with aclosing(prune_in_batches(upkeep, self._kept, clock=context.clock)) as steps:
                async for count in steps:
                    deleted += count
                    if context.clock.monotonic() >= until or not context.ownership.owns(0):
                        return
            self._next = now + EVERY
        except RowsRefusedError as error:
            # A foreign key of the application refers to old rows. That is no outage: nothing else waits for it.
            self._next = now + EVERY
            context.announce(StoreFailed(relay=context.relay, error=str(error), delay=EVERY))
        finally:
            if deleted:
                context.announce(Pruned(relay=context.relay, count=deleted))


async def report_statistics(context: RelayContext, now: float) -> None:
    """Write the counts of decisions; the owner of the first lane also writes how many messages are pending and dead."""
    statistics = context.statistics
    if now < statistics.next_report:
        return
    statistics.next_report = now + REPORT_EVERY
    counted = statistics.take()
    values: dict[str, DeliveryStatistics | BacklogStatistics] = dict(counted)
    try:
        if context.ownership.owns(0):
            values[OUTBOX] = await _level(context)
        if values:
            await context.store.statistics.add(context.relay, values)
    except StoreUnavailableError:
        statistics.put_back(counted)
        raise


async def _level(context: RelayContext) -> BacklogStatistics:
    seen = await context.store.statistics.backlog()
    return BacklogStatistics(recorded=seen.recorded, backlog=seen.messages, oldest=seen.oldest, dead=seen.dead)
