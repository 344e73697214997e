"""Retention, in small bites: the owner of the first lane does it for all, while its rounds pause."""

from __future__ import annotations

from contextlib import aclosing

from pillarbox.core.clock import Clock
from pillarbox.core.errors import RowsRefused
from pillarbox.core.observations import Announcer, Pruned, StoreFailed
from pillarbox.core.pruning import bites
from pillarbox.core.retention import Retention
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
        await self._upkeep.prepare()
        pruned = 0
        try:
            async with aclosing(bites(self._upkeep, self._kept, clock=self._clock)) as work:
                async for gone in work:
                    pruned += gone
                    if self._clock.monotonic() >= until or not self._ownership.owns(0):
                        return
            self._next = now + EVERY
        except RowsRefused as error:
            # Somebody's foreign key keeps what is old. That is no outage: nothing else waits for it.
            self._next = now + EVERY
            self._announce(StoreFailed(relay=self._relay, error=str(error), delay=EVERY))
        finally:
            if pruned:
                self._announce(Pruned(relay=self._relay, count=pruned))
