"""Retention, in small bites: the owner of the first lane does it for all, while its rounds pause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from datetime import datetime

from pillarbox.core.clock import Clock
from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.observations import Announcer, Pruned, StoreFailed
from pillarbox.core.outcome import DELIVERED, Dead, Retry, Verdict
from pillarbox.core.pruning import bites
from pillarbox.core.retention import Retention
from pillarbox.core.statistics import Carried, bucket
from pillarbox.core.store import Store
from pillarbox.relay.lanes import Ownership

EVERY = 60.0


class Housekeeping:
    """Keeps the tables small."""

    def __init__(
        self, *, relay: str, store: Store, ownership: Ownership, kept: Retention, clock: Clock, announce: Announcer
    ) -> None:
        self._relay = relay
        self._upkeep = store.upkeep
        self._schema = store.schema
        self._ownership = ownership
        self._kept = kept
        self._clock = clock
        self._announce = announce
        self._next = 0.0

    async def work(self, *, until: float) -> None:
        """Take bites until nothing old is left or that moment is reached; then the next call goes on."""
        now = self._clock.monotonic()
        if now < self._next or not self._ownership.owns(0):
            return
        await self._schema.prepare()
        pruned = 0
        try:
            async with aclosing(bites(self._upkeep, self._kept, clock=self._clock)) as work:
                async for gone in work:
                    pruned += gone
                    if self._clock.monotonic() >= until or not self._ownership.owns(0):
                        return
            self._next = now + EVERY
        except RowsRefusedError as error:
            # Somebody's foreign key keeps what is old. That is no outage: nothing else waits for it.
            self._next = now + EVERY
            self._announce(StoreFailed(relay=self._relay, error=str(error), delay=EVERY))
        finally:
            if pruned:
                self._announce(Pruned(relay=self._relay, count=pruned))


class Figures:
    """Counts by destination, until they are taken."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, Carried] = defaultdict(Carried)

    def count(self, verdicts: Iterable[Verdict], now: datetime) -> None:
        recorded: defaultdict[str, list[datetime]] = defaultdict(list)
        for message, outcome, destination, _ in verdicts:
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
                carried.delivered(shortest, len(times))
            else:
                for at in times:
                    carried.delivered((now - at).total_seconds())

    def take(self) -> dict[str, Carried]:
        taken, self._counts = dict(self._counts), defaultdict(Carried)
        return taken

    def put_back(self, taken: Mapping[str, Carried]) -> None:
        """What could not be told is told the next time."""
        for destination, carried in taken.items():
            self._counts[destination].add(carried)
