"""How the store fares, for everybody who asks over HTTP.

What must stay true: whoever asks, and however often, the store is looked at no more than once in a few seconds, on a
connection of its own; a store that hangs costs its askers a bounded wait, and the relay nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.overview import Overview
from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.errors import PillarboxError
from pillarbox.core.statistics import COUNTED
from pillarbox.core.store import Override

FRESH = 5.0
"""Seconds for which a look at the store is good."""
RETRY = 1.0
"""Seconds after which a store that could not be looked at is looked at again."""
PATIENCE = 3.0
"""Seconds that a store has to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a look at the store showed."""

    overview: Overview | None
    """None: it could not be looked at; `error` says why."""
    steering: Sequence[Override] = ()
    error: str = ""


class Lookout:
    """Looks when it is asked, unless it has just looked."""

    def __init__(self, store: AdminStore, *, counted: int = COUNTED, clock: Clock | None = None) -> None:
        """store: one that nobody else works with; it is not closed here. counted: so many that wait are counted."""
        self._store = store
        self._counted = counted
        self._clock = clock or SystemClock()
        self._turn = asyncio.Lock()
        self._seen: Seen | None = None
        self._stale_at = 0.0

    @property
    def destinations(self) -> set[str]:
        """Those that relays had met when the store was last looked at."""
        seen = self._seen.overview if self._seen is not None else None
        return {name for relay in seen.relays for name in relay.breakers} if seen is not None else set()

    async def look(self) -> Seen:
        """What was seen at most a few seconds ago; raises nothing that a store could be at fault for."""
        async with self._turn:
            if self._seen is None or self._clock.monotonic() >= self._stale_at:
                self._seen = await self._look()
                # A relay that waits for its store is ready as soon as the store is back.
                self._stale_at = self._clock.monotonic() + (FRESH if self._seen.overview is not None else RETRY)
            return self._seen

    async def _look(self) -> Seen:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._store.schema.check()
                overview = await self._store.admin.inspection.overview(counted=self._counted)
                steering = await self._store.destinations.overrides()
        except TimeoutError:
            return Seen(overview=None, error=f"the store has not answered for {PATIENCE:g} s")
        except PillarboxError as error:
            return Seen(overview=None, error=str(error))
        return Seen(overview=overview, steering=steering)
