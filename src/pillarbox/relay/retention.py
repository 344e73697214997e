"""Retention and statistics: what the owner of the first lane does for all relays, and what each relay reports.

Retention deletes in small steps, between two rounds of the coordinator. Statistics are counted as decisions are written
and reported every ten seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING

from pillarbox.core.errors import RowsRefusedError, StoreUnavailableError
from pillarbox.core.observations import Pruned, StoreFailed
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Retry
from pillarbox.core.statistics import EVERY as REPORT_EVERY
from pillarbox.core.statistics import OUTBOX, BacklogStatistics, DeliveryStatistics, bucket
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


class Statistics:
    """Counts by destination, until they are reported."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, DeliveryStatistics] = defaultdict(DeliveryStatistics)
        self._next_report = 0.0

    def count(self, decisions: Iterable[Decision], now: datetime) -> None:
        """Count decisions that were written."""
        recorded: defaultdict[str, list[datetime]] = defaultdict(list)
        for message, outcome, destination, _ in decisions:
            if outcome is DELIVERED:
                recorded[destination].append(message.recorded_at)
            elif isinstance(outcome, Retry):
                self._counts[destination].retried += 1
            elif isinstance(outcome, Dead):
                self._counts[destination].dead += 1
        for destination, times in recorded.items():
            carried = self._counts[destination]
            shortest, longest = (now - max(times)).total_seconds(), (now - min(times)).total_seconds()
            if bucket(shortest) == bucket(longest):
                carried.count_delivered(shortest, len(times))
            else:
                for at in times:
                    carried.count_delivered((now - at).total_seconds())

    def take(self) -> dict[str, DeliveryStatistics]:
        """The counts since the last report, to be reported now."""
        taken, self._counts = dict(self._counts), defaultdict(DeliveryStatistics)
        return taken

    def put_back(self, taken: Mapping[str, DeliveryStatistics]) -> None:
        """What could not be reported is reported the next time."""
        for destination, carried in taken.items():
            self._counts[destination].add(carried)

    async def report(self, context: RelayContext, now: float) -> None:
        """Write the counts; the owner of the first lane also writes how many messages are pending and dead."""
        if now < self._next_report:
            return
        self._next_report = now + REPORT_EVERY
        carried = self.take()
        values: dict[str, DeliveryStatistics | BacklogStatistics] = dict(carried)
        try:
            if context.ownership.owns(0):
                values[OUTBOX] = await _level(context)
            if values:
                await context.store.statistics.add(context.relay, values)
        except StoreUnavailableError:
            self.put_back(carried)
            raise


async def _level(context: RelayContext) -> BacklogStatistics:
    seen = await context.store.statistics.backlog()
    return BacklogStatistics(recorded=seen.recorded, backlog=seen.messages, oldest=seen.oldest, dead=seen.dead)
