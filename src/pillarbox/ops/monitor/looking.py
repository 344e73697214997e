"""How the store fares, for everybody who asks over HTTP.

What must stay true: whoever asks, and however often, the store is looked at no more than once in a few seconds, on a
connection of its own; a store that hangs costs its askers a bounded wait, and the relay nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.errors import PillarboxError
from pillarbox.core.overview import Overview
from pillarbox.core.steering import Steering
from pillarbox.core.store import Store

FRESH = 5.0
"""Seconds for which a look at the store is good."""
QUEUES_FRESH = 30.0
"""Seconds for which a look at the dead-letter queues of brokers is good: it costs a connection."""
PATIENCE = 3.0
"""Seconds that a store has to answer."""

_NONE: Mapping[str, int] = MappingProxyType({})

Depths = Callable[[], Awaitable[Mapping[str, int]]]
"""Dead-letter queues, and how many letters lie in each; those that cannot be asked are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a look at the store showed."""

    overview: Overview | None
    """None: it could not be looked at; `error` says why."""
    steering: Sequence[Steering] = ()
    error: str = ""
    queues: Mapping[str, int] = field(default_factory=lambda: _NONE)


class Lookout:
    """Looks when it is asked, unless it has just looked."""

    def __init__(self, store: Store, *, depths: Depths | None = None, clock: Clock | None = None) -> None:
        """store: one that nobody else works with; it is not closed here."""
        self._store = store
        self._depths = depths
        self._clock = clock or SystemClock()
        self._turn = asyncio.Lock()
        self._seen: Seen | None = None
        self._stale_at = 0.0
        self._queues: Mapping[str, int] = _NONE
        self._queues_stale_at = 0.0

    async def look(self) -> Seen:
        """What was seen at most a few seconds ago; raises nothing that a store or a broker could be at fault for."""
        async with self._turn:
            if self._seen is None or self._clock.monotonic() >= self._stale_at:
                self._seen = await self._look()
                self._stale_at = self._clock.monotonic() + FRESH
            return self._seen

    async def _look(self) -> Seen:
        if self._depths is not None and self._clock.monotonic() >= self._queues_stale_at:
            self._queues = await self._depths()
            self._queues_stale_at = self._clock.monotonic() + QUEUES_FRESH
        try:
            async with asyncio.timeout(PATIENCE):
                await self._store.schema.check()
                overview = await self._store.inspection.overview()
                steering = await self._store.destinations.steering()
        except TimeoutError:
            return Seen(overview=None, error=f"the store has not answered for {PATIENCE:g} s", queues=self._queues)
        except PillarboxError as error:
            return Seen(overview=None, error=str(error), queues=self._queues)
        return Seen(overview=overview, steering=steering, queues=self._queues)
